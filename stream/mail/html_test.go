package mail

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// A plainFolder is a folder the plain way.
type plainFolder struct{ written strings.Builder }

func (f *plainFolder) write(b []byte) { f.written.Write(b) }

func (f *plainFolder) blank() { f.written.WriteByte(' ') }

func (f *plainFolder) done() []byte {
	white := func(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' || r == '\u00A0' }
	return []byte(strings.Join(strings.FieldsFunc(f.written.String(), white), " "))
}

// stripByTokenizer is stripHTML the plain way, on the tokenizer of x/net.
func stripByTokenizer(src []byte) []byte {
	var f plainFolder
	z := html.NewTokenizer(bytes.NewReader(src))
	hidden := false // within style or script
	for {
		switch z.Next() {
		case html.ErrorToken: // the end
			f.write(z.Raw())
			return f.done()
		case html.TextToken:
			if !hidden {
				f.write(z.Text())
			}
			hidden = false
		case html.StartTagToken, html.SelfClosingTagToken:
			name, attributes := z.TagName()
			switch string(name) {
			case "p", "br", "td", "div":
				f.blank()
			case "style", "script":
				hidden = true
			case "iframe", "noembed", "noframes", "noscript", "plaintext", "xmp":
				z.NextIsNotRawText() // what they hold has tags, too
			}
			targets := map[string][]byte{}
			for attributes {
				var key, value []byte
				key, value, attributes = z.TagAttr()
				targets[string(key)] = bytes.Clone(value)
			}
			for _, key := range []string{"href", "src"} {
				if len(targets[key]) > 0 {
					f.blank()
					f.write(targets[key])
					f.blank()
				}
			}
		case html.EndTagToken:
			hidden = false
		}
	}
}

func TestStripHTML(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"comment within a word", "Mo<!--x-->rtgage", "Mortgage"},
		{"tags within a word", "Mo<b>r<font color=red>t</font></b>gage", "Mortgage"},
		{"spaces fold", " a \r\n\t b&nbsp;&nbsp;c ", "a b c"},
		{"only these four become a space", "a<p>b<br>c<td>d<div>e<tr>f<li>g<pre>h", "a b c d efgh"},
		{"in capitals and with attributes", "a<P align=left>b<BR/>c", "a b c"},
		{"end tags leave nothing", "a</p>b</div>c", "abc"},
		{"style and script", "a<style>p {x}</style>b<SCRIPT>if (a<b) c()</ScRiPt >c", "abc"},
		{"style that never ends", "a<style>b</styles>c", "a"},
		{"href and src", `go <a href="http://a.example/?x=1&amp;y=2">here</a><img SRC='b.png'>now`, "go http://a.example/?x=1&y=2 here b.png now"},
		{"href that is empty", `a<a href="">b`, "ab"},
		{"the first href counts", `<a href=a href=b>c`, "a c"},
		{"a name, not an end of one", `<a nohref=x data-src=y>z`, "z"},
		{"entities", "&lt;b&gt; &#86;&#x69;agra &eacute; &unknown; & &copy", "<b> Viagra é &unknown; & ©"},
		{"entities in a target", `<a href="?a=1&copy=2&#106;&lt">`, "?a=1&copy=2j<"},
		{"short comments", "a<!-->b<!--->c<!---->d<!--x--!>e", "abcde"},
		{"comment that never ends", "a<!-- b", "a"},
		{"declarations", `<!DOCTYPE html "x">a<?php x ?>b</ x>c`, "abc"},
		{"not a tag", "1 < 2, <3, a<", "1 < 2, <3, a<"},
		{"a tag that never ends", `a <a href="b> c`, `a <a href="b> c`},
		{"an end tag that never ends", "a </b c", "a </b c"},
		{"title has no tags", "<title>a<b>c</title>d", "a<b>cd"},
		{"noscript has tags", "<noscript>a<b>c</noscript>d", "acd"},
		{"quotes hide the end", `a<img alt=">" title='>'>b`, "ab"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(stripHTML([]byte("["), []byte(c.src))); got != "["+c.want {
				t.Errorf("stripHTML(%q) = %q, want %q", c.src, got, "["+c.want)
			}
			if got := string(stripByTokenizer([]byte(c.src))); got != c.want {
				t.Errorf("by the tokenizer, %q = %q, want %q", c.src, got, c.want)
			}
		})
	}
}

// likeTokenizer reports whether the tokenizer reads src by the same rules. It
// differs where browsers run scripts: a comment may hide the end of one, and
// in NUL, which it replaces.
func likeTokenizer(src []byte) bool {
	lower := strings.ToLower(string(src))
	return !strings.Contains(lower, "\x00") &&
		!(strings.Contains(lower, "<script") && strings.Contains(lower, "<!--"))
}

func TestStripHTMLOfCorpus(t *testing.T) {
	n := 0
	for _, m := range corpus(t) {
		var s scanner
		s.scan(m.raw)
		for i := range s.entities {
			e := &s.entities[i]
			if !e.html {
				continue
			}
			body := m.raw[e.body.start:e.body.end]
			if e.encoding != identity {
				body = s.decodeTransfer(e.encoding, body)
			}
			body = appendUTF8(nil, body)
			if !likeTokenizer(body) {
				continue
			}
			n++
			if diff := cmp.Diff(string(stripByTokenizer(body)), string(stripHTML(nil, body))); diff != "" {
				t.Errorf("%s: (-tokenizer +stripHTML):\n%s", m.name, diff)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d parts of HTML were compared", n)
	}
}

func FuzzStripHTML(f *testing.F) {
	for _, s := range []string{
		"Mo<!--x-->rtgage", "<a href=x>y</a>", "<p>a<br/>b", "<style>x</style>y", "&amp;&#106;&lt", "a<", "<a b='", "<!-->", "<a =b=c/d>e",
		"<title></title x='>'>y", "<a href = x>", "<a href=&not href>", "</a b=\">\">c", "<a/href=x>",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		src = appendUTF8(nil, src)
		got := stripHTML(nil, src)
		if !utf8.Valid(got) {
			t.Errorf("stripHTML(%q) = %q, not UTF-8", src, got)
		}
		if bytes.Contains(got, []byte("  ")) || len(got) > 0 && (got[0] == ' ' || got[len(got)-1] == ' ') {
			t.Errorf("stripHTML(%q) = %q, not folded", src, got)
		}
		if !likeTokenizer(src) {
			return
		}
		if want := stripByTokenizer(src); !bytes.Equal(got, want) {
			t.Errorf("stripHTML(%q)\n     = %q\n want %q", src, got, want)
		}
	})
}
