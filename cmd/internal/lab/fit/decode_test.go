package fit

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// The error names all mistakes of a request, in an order independent of the request's.
func TestErrors(t *testing.T) {
	withSum(t)
	for _, c := range []struct{ request, want string }{
		{``, "not JSON"},
		{`{"algorithm":"sum","x":[[1,2],[NaN,0]]}`, "x: not JSON: invalid character 'N' looking for beginning of value (byte 32)"},
		{`{"algorithm":"sum","rounds":Infinity}`, "rounds: not JSON: invalid character 'I'"},
		{`{"algorithm":"sum","x":[{"y":-Infinity}]}`, "x: not JSON: invalid character 'I'"},
		{`{"algorithm":"sum","x":[1,2],y:3}`, "not JSON: invalid character 'y'"},
		{`{"algorithm":"sum","x":[[1,2]`, "x: not JSON: unexpected end"},
		{`["x",NaN]`, "not JSON"},
		{`{"algorithm":"sum"} {}`, "not JSON"},
		{"{\"algorithm\":\"\xff\"}", "not JSON: not UTF-8"},
		{`[1]`, "an object is wanted, not an array"},
		{`null`, "an object is wanted, not null"},
		{`{}`, "algorithm: missing; known are "},
		{`{"Algorithm":"sum"}`, "algorithm: missing"},
		{`{"algorithm":"sum","algorithm":"sum"}`, "algorithm: given twice"},
		{`{"algorithm":3}`, "algorithm: a string is wanted, not a number"},
		{`{"algorithm":"Sum"}`, `algorithm: "Sum" is unknown; known are `},
		{`{"algorithm":"sum"}`, "x: missing; y: missing"},
		{`{"algorithm":"sum","X":1,"b\"":2,"seed":-1}`,
			`X: unknown field; sum has x, y, x_test, seed, scale, mode, pair, drop, rounds, fail; b": unknown field; ` +
				`sum has x, y, x_test, seed, scale, mode, pair, drop, rounds, fail; seed: -1 is negative; x: missing; y: missing`},
		{`{"algorithm":"sum","x":[[1,2],[3]],"y":[1,-1]}`, "x: row 1 has 1 entries, row 0 has 2"},
		{`{"algorithm":"sum","x":[[1,2],3],"y":[1,-1]}`, "x[1]: an array is wanted, not a number"},
		{`{"algorithm":"sum","x":[[1,2],[3,null]],"y":[1,-1]}`, "x[1][1]: a number is wanted, not null"},
		{`{"algorithm":"sum","x":[[1,-1e400]],"y":[1]}`, "x[0][1]: -1e400 is beyond float64"},
		{`{"algorithm":"sum","x":[],"y":[]}`, "x: empty, without rows; y: empty, without entries"},
		{`{"algorithm":"sum","x":[[]],"y":[1]}`, "x: empty, without columns"},
		{`{"algorithm":"sum","x":[[1],[2]],"y":[1,1,1]}`, "y: 3 entries, but x has 2 rows"},
		{`{"algorithm":"sum","x":[[1]],"y":[0]}`, "y[0]: 0 is no label; 1 and -1 are"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"x_test":[[1,2]]}`, "x_test: 2 columns, but x has 1 columns"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"scale":0}`, "scale: 0 is not in (0,∞)"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"scale":null}`, "scale: a number is wanted, not null"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"mode":"signe"}`, `mode: "signe" is not one of plain, signed, 3`},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"pair":[0,1]}`, "pair[1]: 1 is not in [0,1)"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"pair":[0]}`, "pair: 1 entries where 2 are wanted"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"drop":[1,2.5]}`, "drop[1]: 2.5 is not a whole number"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"rounds":101}`, "rounds: 101 is not in [1,100]"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"rounds":1,"rounds":1}`, "rounds: given twice"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"rounds":1,"\u0072ounds":1}`, "rounds: given twice"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"seed":18446744073709551616}`, "seed: 18446744073709551616 is beyond the whole numbers"},
		{`{"algorithm":"sum","x":[[1]],"y":[1],"fail":"error"}`, "fail: as asked"},
	} {
		_, err := answer(t.Context(), []byte(c.request))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.request, err, c.want)
		}
	}
}

// The error of a request with a thousand mistakes stays readable.
func TestManyErrors(t *testing.T) {
	withSum(t)
	var b strings.Builder
	b.WriteString(`{"algorithm":"sum"`)
	for i := range 1000 {
		b.WriteString(`,"` + strings.Repeat("é", 200) + strconv.Itoa(i) + `":1`)
	}
	_, err := answer(t.Context(), []byte(b.String()+"}"))
	if err == nil || len(err.Error()) > 3000 || !strings.HasSuffix(err.Error(), "; and 992 more problems") {
		t.Errorf("got %v", err)
	}
}

// Different spellings of a value give the same value.
func TestSpellings(t *testing.T) {
	withSum(t)
	for _, pair := range [][2]string{
		{`"rounds":50`, `"rounds":5e1`},
		{`"rounds":50`, `"rounds":50.0`},
		{`"mode":"3"`, `"mode":3`},
		{`"mode":"3"`, `"mode":3.0`},
		{`"mode":"signed"`, `"mode":"sign\u0065d"`},
		{`"seed":1`, `"\u0073eed":1.0`},
	} {
		a, failed := ask(t, strings.Replace(sumLine, `"y"`, pair[0]+`,"y"`, 1))
		b, _ := ask(t, strings.Replace(sumLine, `"y"`, pair[1]+`,"y"`, 1))
		if failed || a != b {
			t.Errorf("%s got %s\n%s got %s", pair[0], a, pair[1], b)
		}
	}
}

// A mistake in a tag is found when the program starts.
func TestBadTagsPanic(t *testing.T) {
	for _, q := range []any{
		struct{ X float64 }{},
		struct {
			X float64 `json:"algorithm"`
		}{},
		struct {
			X float32 `json:"x"`
		}{},
		struct {
			X []float64 `json:"x"`
		}{},
		struct {
			X []float64 `json:"x" shape:"N×D"`
		}{},
		struct {
			X float64 `json:"x" shape:"N"`
		}{},
		struct {
			X float64 `json:"x" in:"[0,1"`
		}{},
		struct {
			X float64 `json:"x" in:"[1,0]"`
		}{},
		struct {
			X float64 `json:"x" in:"[0,1]" default:"2"`
		}{},
		struct {
			X string `json:"x"`
		}{},
		struct {
			examples
			Twice float64 `json:"y"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is taken for a request", q)
				}
			}()
			newSchema("bad", reflect.TypeOf(q))
		}()
	}
}

// encoding/json also prints the shortest text that reads back.
func TestNumbersReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), 1, 1e-6, 9.99e-7, 1e20, 1e21, 123456789012345680000, 0.1, 1.0 / 3,
		math.MaxFloat64, math.SmallestNonzeroFloat64, 0x1p-1022, -5e-324, 1e100, 100}
	for range 10_000 {
		if v := math.Float64frombits(r.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v, float64(r.IntN(1000))/8)
		}
	}
	for _, v := range values {
		b, err := appendNumber(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := strconv.ParseFloat(string(b), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(v) {
			t.Fatalf("%v is printed as %s, which reads back as %v", v, b, back)
		}
		std, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(std)+1 || !json.Valid(b) {
			t.Errorf("%v is printed as %s, encoding/json prints %s", v, b, std)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if b, err := appendNumber(nil, v); err == nil {
			t.Errorf("%v is printed as %s", v, b)
		}
	}
}

// FuzzLine: every line gets one line of valid JSON, and members finds what encoding/json
// finds.
func FuzzLine(f *testing.F) {
	withSum(f)
	for _, name := range names() {
		if name != "sum" {
			for _, l := range requestsOf(f, name) {
				f.Add([]byte(l))
			}
		}
	}
	f.Add([]byte(sumLine))
	f.Add([]byte(`{"algorithm":"sum","x":[[1,"]}\\\"["],{"a":[-1e-9,true]}],"y":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.ContainsAny(text, "\n") || len(text) > 4096 {
			t.Skip("more than one line, or one that may keep an algorithm busy")
		}
		if list, err := members(text); err == nil {
			var want map[string]json.RawMessage
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatalf("%q: encoding/json says %v", text, err)
			}
			got := map[string]json.RawMessage{}
			for _, m := range list {
				if m.name == "fail" {
					t.Skip("what the test's own algorithm does to order")
				}
				got[m.name] = m.value
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%q: members %q, want %q", text, got, want)
			}
		}
		reply, failed := ask(t, string(text))
		if reply[0] != '{' || failed != strings.HasPrefix(reply, `{"error":`) {
			t.Errorf("%q: reply %s", text, reply)
		}
	})
}

// BenchmarkDecode reads a matrix of 20 MB, also with encoding/json, which checks less.
func BenchmarkDecode(b *testing.B) {
	x := make([][]float64, 2000)
	for i := range x {
		x[i] = make([]float64, 500)
		for j := range x[i] {
			x[i][j] = 1 / float64(i+j+3)
		}
	}
	text := []byte(requestLine(b, "matrix", "x", x))
	b.Run("door", func(b *testing.B) {
		a := newAlgorithm("matrix", func(context.Context, *struct {
			X [][]float64 `json:"x" shape:"N×D"`
		}) ([]byte, error) {
			return nil, nil
		})
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			list, err := members(text)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := a.solve(b.Context(), list); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			var q struct {
				X [][]float64 `json:"x"`
			}
			if err := json.Unmarshal(text, &q); err != nil {
				b.Fatal(err)
			}
		}
	})
}
