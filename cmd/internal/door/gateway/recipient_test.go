package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recipients returns tenants of these recipients, written as YAML.
func recipients(t testing.TB, yaml string) (*Tenants, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(path, []byte("default: isp\nrecipients: {"+yaml+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return OpenTenants(path, slog.New(slog.DiscardHandler))
}

// TestSpelling checks that a client does not choose the tenant by how it spells a
// recipient. A real Postfix delivers all of ann's to one mailbox, but for the extensions.
func TestSpelling(t *testing.T) {
	tenants, err := recipients(t, `Ann@Example.org: ann, ann+shop@example.org: shop, "@example.org": rest, `+
		`'"a b"@example.org': blank, '"a@b"@example.org': at, "@[IPv6:::1]": ip, '"x.y"@example.com.': xy`)
	if err != nil {
		t.Fatal(err)
	}
	for want, spellings := range map[string][]string{
		"ann": {
			"ann@example.org", "<ann@example.org>", "ANN@EXAMPLE.ORG", "  ann@example.org ", "<<ann@example.org>>",
			`"ann"@example.org`, `<"ann"@example.org>`, `a\nn@example.org`, `"a\nn"@example.org`, `"ann@example.org"`,
			"ann@example.org.", "<ann@example.org.>", "ann@example.org..", `ann@"example.org"`, `ann@exam\ple.org`,
			"@host:ann@example.org", "<@a,@b:ann@example.org>", "@a:@b:ann@example.org", "@[1.2.3.4]:ann@example.org",
			"@[IPv6:::1]:ann@example.org", "list:ann@example.org;", `@host:"ann"@example.org.`,
			"ann @example.org", "ann@\texample.org", "ann(x)@example.org", "ann@(x(y)@z)example.org", "ann@example.org>(x)",
			`ann@example.org (\):x)`, ",ann@example.org", "ann@example.org,", "ann%example.org", "example.org!ann",
			"example.org.!ann", "<example.org..!ann.>",
			"ann+news@example.org", "ann+news+more@example.org", `"ann+news"@example.org`, "ann+@example.org",
		},
		"shop":  {"ann+shop@example.org", `"ann+shop"@Example.org.`, "@x:ann+shop@example.org"},
		"rest":  {"bob@example.org", "bob+ann@example.org", "+ann@example.org", `"@host:ann"@example.org`, "@host:bob@example.org", "@example.org", ".ann@example.org", "@[host:ann@example.org"},
		"blank": {`"a b"@example.org`, `"a\ b"@example.org`},
		"at":    {`"a@b"@example.org`, `a\@b@example.org`},
		"ip":    {"bob@[IPv6:::1]", "@host:bob@[ipv6:::1]"},
		"xy":    {"x.y@example.com", `"x.y"@example.com`},
		"isp": {
			"", "<>", "ann", "ann@", "@", "@:", "@host:ann", "ann@example.com", "ann@example.org@elsewhere.org", "ann@sub.example.org",
			`"`, `\`, "(", ")", "[", "ann(@example.org", `"ann@example.org@`, "%", "!", ":", "+@", "a.b@[1.2.3.4]",
		},
	} {
		for _, spelling := range spellings {
			if got := tenants.OfRecipient(spelling); got != want {
				t.Errorf("%q is of %q, want %q", spelling, got, want)
			}
		}
	}
}

// TestTwoTenants checks that the operator cannot give one mailbox to two tenants.
func TestTwoTenants(t *testing.T) {
	for yaml, want := range map[string]string{
		`ann@example.org: a, Ann@example.org: b`:      "two tenants",
		`ann@example.org: a, '"ann"@example.org.': b`: "two tenants",
		`ann@example.org: a, ANN@example.org: a`:      "",
		`"bob:": a`:                                   "neither an address",
	} {
		_, err := recipients(t, yaml)
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) {
				t.Errorf("%s: %v", yaml, err)
			}
		} else if want != "" {
			t.Errorf("%s: no error, want %q", yaml, want)
		}
	}
}

// FuzzCanonical checks that the spelling of an address that is canonical, and needs no
// quotes, does not change again.
func FuzzCanonical(f *testing.F) {
	for _, address := range []string{"<Ann@example.org>", `@host:"a\nn"@example.org.`, "ann(x)@[IPv6:::1]", "example.org!ann%x"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		once := canonical(address)
		if strings.ContainsAny(once, " \t\r\n\"\\()<>,;:[]") {
			return
		}
		if twice := canonical(once); twice != once {
			t.Errorf("%q became %q and then %q", address, once, twice)
		}
	})
}
