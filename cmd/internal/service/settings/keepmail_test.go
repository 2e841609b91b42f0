package settings

import (
	"log/slog"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream/embedded"
)

func TestKeepMailOutsideItsRange(t *testing.T) {
	for want, f := range map[string]KeepMail{
		"":                                 {KeepMail: 7, KeepMailSize: 512},
		"--keep-mail: -1 is not in":        {KeepMail: -1, KeepMailSize: 512},
		"--keep-mail: 10000 is not in":     {KeepMail: 10000, KeepMailSize: 512},
		"--keep-mail-size: 0 is not in":    {KeepMail: 7},
		"--keep-mail-size: 2097152 is not": {KeepMail: 7, KeepMailSize: 2 << 20},
	} {
		err := f.Check()
		if want == "" && err != nil || want != "" && (cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

// Answers to a user that a URL names come below its own subject.
func TestConnectApart(t *testing.T) {
	n, err := embedded.StartNATS(embedded.NATSOptions{Users: []embedded.NATSUser{{Name: "mailreader", Password: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	conn, err := ConnectApart("--mail-nats", strings.Replace(n.URL(), "nats://", "nats://mailreader:x@", 1), "test", NATSAccess{NATSUser: "other"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if inbox := conn.NewRespInbox(); !strings.HasPrefix(inbox, "_INBOX.mailreader.") {
		t.Errorf("the inbox is %s", inbox)
	}
	if _, err := ConnectApart("--mail-nats", "nats://%zz", "test", NATSAccess{}, nil); cli.Status(err) != cli.StatusUsage {
		t.Errorf("%v, want wrong usage", err)
	}
}
