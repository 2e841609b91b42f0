package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/service/strictness"
	"hamlet/stream"
)

// Tenants map what a client says of a message to the tenant whose mail it is. The
// operator writes them as YAML:
//
//	default: isp                 # whoever is not named below; without it: default
//	recipients:
//	  alice@example.org: alice
//	  "@example.org": example    # every other recipient of the domain
//	users:                       # spamd's and rspamd's User
//	  alice: alice
//	tokens:                      # bearer tokens of HTTP
//	  SECRET: example
//	strictness:                  # when a tenant's mail is spam, for scorers: see package strictness
//	  example: {lose-at-most: 0.1%}
//
// With tokens the file is secret: see package secretfile. Without them it may be anybody's,
// such as a ConfigMap of Kubernetes. A nil *Tenants maps all to "default". Tenants may be used
// concurrently.
type Tenants struct {
	path string
	log  *slog.Logger
	live *secretfile.Live[tenantTable]
}

type tenantTable struct {
	Default    string            `yaml:"default"`
	Recipients map[string]string `yaml:"recipients"`
	Users      map[string]string `yaml:"users"`
	Tokens     map[string]string `yaml:"tokens"`
	Strictness strictness.Rules  `yaml:"strictness"`

	tokens map[[sha256.Size]byte]string // Tokens by hash, so that no comparison's time tells
}

// OpenTenants reads the file.
func OpenTenants(path string, log *slog.Logger) (*Tenants, error) {
	live, err := secretfile.Open(func() (tenantTable, error) { return readTenants(path) }, path)
	if err != nil {
		return nil, err
	}
	return &Tenants{path, log, live}, nil
}

// maxTenantsFile bounds the file of tenants, in bytes.
const maxTenantsFile = 64 << 20

func readTenants(path string) (tenantTable, error) {
	data, unfit, err := secretfile.ReadAny(path, maxTenantsFile)
	if err != nil {
		return tenantTable{}, fmt.Errorf("tenants: %w", err)
	}
	t, err := parseTenants(data)
	switch {
	case err != nil:
		return t, fmt.Errorf("tenants of %s: %w", path, err)
	case len(t.tokens) > 0 && unfit != nil:
		return t, fmt.Errorf("tenants: %w", unfit)
	}
	return t, nil
}

func parseTenants(data []byte) (t tenantTable, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&t); err != nil {
		return t, err
	}
	var errs []error
	t.Default = cmp.Or(t.Default, stream.DefaultName)
	for _, m := range []map[string]string{{"default": t.Default}, t.Recipients, t.Users, t.Tokens} {
		for _, tenant := range m {
			if err := strictness.CheckTenant(tenant); err != nil {
				errs = append(errs, err)
			}
		}
	}
	recipients := make(map[string]string, len(t.Recipients))
	for written, tenant := range t.Recipients {
		address := canonical(written)
		if !strings.Contains(address, "@") {
			errs = append(errs, fmt.Errorf("recipients: %q is neither an address nor @domain", written))
		}
		if other, ok := recipients[address]; ok && other != tenant {
			errs = append(errs, fmt.Errorf("recipients: %q has two tenants", address))
		}
		recipients[address] = tenant
	}
	t.Recipients = recipients
	t.tokens = make(map[[sha256.Size]byte]string, len(t.Tokens))
	for token, tenant := range t.Tokens {
		if token == "" {
			errs = append(errs, errors.New("tokens: one is empty"))
		}
		t.tokens[sha256.Sum256([]byte(token))] = tenant
	}
	t.Tokens = nil
	return t, errors.Join(errs...)
}

// table returns the current table. Without a file it is empty.
func (t *Tenants) table() *tenantTable {
	if t == nil {
		return &tenantTable{}
	}
	return t.live.Get()
}

// Default returns the tenant of what is not named.
func (t *Tenants) Default() string { return cmp.Or(t.table().Default, stream.DefaultName) }

// OfRecipient returns the tenant of a recipient's address, in any of the spellings that
// mail servers take for the same mailbox. It looks for the address itself; for
// user@domain, if the address is user+extension@domain; and for @domain.
func (t *Tenants) OfRecipient(address string) string {
	table := t.table()
	if table.Recipients == nil {
		return t.Default()
	}
	address = canonical(address)
	if tenant, ok := table.Recipients[address]; ok {
		return tenant
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return t.Default()
	}
	user, domain := address[:at], address[at:]
	if plus := strings.IndexByte(user, '+'); plus > 0 {
		if tenant, ok := table.Recipients[user[:plus]+domain]; ok {
			return tenant
		}
	}
	if tenant, ok := table.Recipients[domain]; ok {
		return tenant
	}
	return t.Default()
}

// OfUser returns the tenant of a user's name. A name that is an address is looked for
// among the recipients too.
func (t *Tenants) OfUser(name string) string {
	if tenant, ok := t.table().Users[name]; ok {
		return tenant
	}
	if strings.Contains(name, "@") {
		return t.OfRecipient(name)
	}
	return t.Default()
}

// OfToken returns the tenant of a bearer token, and whether the operator knows the token.
func (t *Tenants) OfToken(token string) (string, bool) {
	tenant, ok := t.table().tokens[sha256.Sum256([]byte(token))]
	return tenant, ok
}

// HasTokens reports whether there are tokens.
func (t *Tenants) HasTokens() bool { return len(t.table().tokens) > 0 }

// Strictness returns the rules of tenants. The map is another one after the file was read again.
func (t *Tenants) Strictness() strictness.Rules { return t.table().Strictness }

// Watch reads the file again when it changes, until ctx ends. A file with a mistake
// changes nothing; the log says so once.
func (t *Tenants) Watch(ctx context.Context) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	t.live.Watch(ctx, time.Tick(watchInterval), nil, func(changed bool, err error) {
		switch {
		case err != nil:
			t.log.Error("the tenants stay as they were", "error", err)
		case changed:
			t.log.Info("tenants read again", "file", t.path)
		}
	})
	return nil
}

// watchInterval is how often a file is looked at.
const watchInterval = 2 * time.Second

// canonical returns an address in small letters, without what does not change its
// mailbox. The SMTP client chooses the spelling, and must not choose the tenant by it.
// Postfix takes all of these for ann@example.org:
//
//	"ann"@example.org   a\nn@example.org   ann@example.org.   quotes, escapes, a last dot
//	@host:ann@example.org   list:ann@example.org;              a route, a group
//	<ann @example.org>   ann(comment)@example.org              blanks, comments, brackets
//	ann%example.org   example.org!ann                          without an "@"
//
// An address that needs its quotes loses them too; it remains unlike any other.
//
// What only the mail server knows is not undone: aliases, and the domain that it adds to
// an address without one.
func canonical(address string) string {
	var (
		b       strings.Builder
		quoted  bool // between quotes
		literal bool // between brackets: an IP address
		depth   int  // of comments
	)
	for i := 0; i < len(address); i++ {
		c := address[i]
		if c == '\\' && i+1 < len(address) {
			i++
			if depth == 0 {
				b.WriteByte(address[i])
			}
			continue
		}
		switch {
		case depth > 0 && c == '(', !quoted && !literal && c == '(':
			depth++
		case depth > 0:
			if c == ')' {
				depth--
			}
		case c == '"':
			quoted = !quoted
		case quoted:
			b.WriteByte(c)
		case c == '[', c == ']':
			literal = c == '['
			b.WriteByte(c)
		case literal:
			b.WriteByte(c)
		case c == ':': // the end of a route, or of a group's name
			b.Reset()
		case strings.IndexByte(" \t\r\n<>,;", c) >= 0:
		default:
			b.WriteByte(c)
		}
	}
	address = strings.TrimRight(b.String(), ".")
	if !strings.Contains(address, "@") {
		if i := strings.LastIndexByte(address, '%'); i >= 0 {
			address = address[:i] + "@" + address[i+1:]
		} else if domain, user, ok := strings.Cut(address, "!"); ok {
			address = user + "@" + strings.TrimRight(domain, ".")
		}
	}
	return strings.ToLower(address)
}
