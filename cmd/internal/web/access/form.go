package access

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// FormField is the field of every form that holds User.FormToken. It stands within the first
// 64 KB of the form: before fields that hold a message.
const FormField = "csrf"

// firstOfForm is how much of a form is read in search of the token. The rest of the body is
// left to the handler, and so are its bounds.
const firstOfForm = 64 << 10

// sign returns a token that only this guard can make, for one purpose and one value.
func (g *Guard) sign(purpose, value string) string {
	m := hmac.New(sha256.New, g.key[:])
	m.Write([]byte(purpose + "\x00" + value))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// checkForm returns an error, a sentence, unless the request comes from a page of this console
// that was made for the same user and session.
func (g *Guard) checkForm(r *http.Request, token string) error {
	if g.origin.Check(r) != nil {
		return sentence("This form was sent by a page of another site. Nothing was done.")
	}
	if token == "" || !hmac.Equal([]byte(formToken(r)), []byte(token)) {
		return sentence("This form is of another session. Nothing was done. Go back, load the page again, and try again.")
	}
	return nil
}

// formToken returns the token in the first part of a form. The body is as before.
func formToken(r *http.Request) string {
	if r.Body == nil {
		return ""
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" && kind != "multipart/form-data" {
		return ""
	}
	var first bytes.Buffer
	n, err := io.CopyN(&first, r.Body, firstOfForm)
	r.Body = &rejoined{Reader: io.MultiReader(bytes.NewReader(first.Bytes()), r.Body), Closer: r.Body}
	if err != nil && err != io.EOF {
		return ""
	}
	if kind == "multipart/form-data" {
		return multipartToken(first.Bytes(), params["boundary"])
	}
	text := first.String()
	for pair := range strings.SplitSeq(text, "&") {
		value, ok := strings.CutPrefix(pair, FormField+"=")
		cut := n == firstOfForm && strings.HasSuffix(text, pair) // it may go on
		if ok && len(value) <= maxToken && !cut {
			return value // of letters that a form does not escape
		}
	}
	return ""
}

// maxToken is longer than any token.
const maxToken = 128

func multipartToken(first []byte, boundary string) string {
	if boundary == "" {
		return ""
	}
	parts := multipart.NewReader(bytes.NewReader(first), boundary)
	for {
		p, err := parts.NextPart()
		if err != nil {
			return ""
		}
		if p.FormName() != FormField || p.FileName() != "" {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(p, maxToken+1))
		if err != nil || len(b) > maxToken {
			return ""
		}
		return string(b)
	}
}

// rejoined is a body whose first part was read already.
type rejoined struct {
	io.Reader
	io.Closer
}
