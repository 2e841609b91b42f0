package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// noCommands are what an open port may receive: other protocols, and broken Redis
// commands.
var noCommands = map[string]string{
	"HTTP":                 "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"TLS":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"a line without end":   strings.Repeat("*", 100),
	"no words":             "*0\r\n",
	"fewer than no words":  "*-1\r\n",
	"too many words":       "*1048577\r\n",
	"a terabyte":           "*1\r\n$999999999999\r\n",
	"overflow":             "*1\r\n$9223372036854775807\r\n",
	"too long a word":      "*1\r\n$67108865\r\n",
	"too long altogether":  "*2\r\n$1\r\nx\r\n$67108864\r\n",
	"a word of no length":  "*1\r\n$\r\n",
	"a negative word":      "*1\r\n$-1\r\n",
	"a word that is none":  "*1\r\n:5\r\n",
	"a list in a command":  "*1\r\n*1\r\n$4\r\nPING\r\n",
	"a line ended by LF":   "*1\n$4\r\nPING\r\n",
	"a number with a sign": "*+1\r\n$4\r\nPING\r\n",
}

const ping = "*1\r\n$4\r\nPING\r\n"

func TestRedisClosesConnectionsThatSpeakNoRedis(t *testing.T) {
	t.Parallel()
	r := startTestRedis(t, RedisOptions{})
	for name, sent := range noCommands {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// A command before it is answered, so that the connection is known to work.
		if _, err := io.WriteString(c, ping); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len("+PONG\r\n"))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "+PONG\r\n" {
			t.Fatalf("%s: the command before was answered with %q, %v", name, answer, err)
		}
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
			t.Errorf("%s: the connection stays open", name)
		}
	}
	if err := dialRedis(t, r).Ping(t.Context()).Err(); err != nil {
		t.Errorf("after the garbage: %v", err)
	}
}

// A client that does not read its replies must not stop the others.
func TestRedisGivesUpOnClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := net.Pipe()
		defer client.Close()
		c := newRedisConn(end)
		reply := bytes.Repeat([]byte{'x'}, 3*writeBytes)
		start := time.Now()
		done := make(chan error, 1)
		go func() {
			n, err := c.Write(reply)
			if n != writeBytes {
				err = fmt.Errorf("%d bytes were written: %w", n, err)
			}
			done <- err
		}()
		if _, err := io.ReadFull(client, make([]byte, writeBytes)); err != nil { // and no more
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != writeTimeout {
			t.Errorf("after %v: %v; want an exceeded deadline after %v", time.Since(start), err, writeTimeout)
		}
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection is not closed: %v", err)
		}
	})
}

// Commands that wait, or make values that no snapshot can hold, are refused. So the
// snapshot succeeds.
func TestRedisRefusesWhatWouldHarmOthers(t *testing.T) {
	t.Parallel()
	r := startTestRedis(t, RedisOptions{Dir: t.TempDir()})
	client := dialRedis(t, r)
	ctx := t.Context()
	ok(t, client.Set(ctx, "k", "v", 0))
	for name, err := range map[string]error{
		"BLPOP":    client.BLPop(ctx, 0, "nothing").Err(),
		"SETRANGE": client.SetRange(ctx, "k", 1<<31-2, "x").Err(),
		"XADD":     client.Do(ctx, "xadd", "s", "*", "a", "b").Err(),
		"PFADD":    client.Eval(ctx, `return redis.call('PFADD', 'h', 'a')`, nil).Err(),
	} {
		if err == nil {
			t.Errorf("%s is done", name)
			continue
		}
		mustSay(t, err, name, "use a real one")
	}
	if err := r.Snapshot(); err != nil {
		t.Error(err)
	}
}

// FuzzCommands: the accepted bytes do not depend on how they were cut, and good
// commands pass.
func FuzzCommands(f *testing.F) {
	f.Add([]byte(ping+ping), uint8(3))
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$0\r\n\r\n"+ping), uint8(0))
	for _, sent := range noCommands {
		f.Add([]byte(ping+sent), uint8(1))
	}
	f.Fuzz(func(t *testing.T, sent []byte, cut uint8) {
		sameForEveryCut(t, ping, sent, int(cut), (*respChecker).check)
	})
}
