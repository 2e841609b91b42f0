package fit

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"hamlet/cmd/internal/show/jsonlines"
)

// appendReply appends the struct r as a JSON object, by the rules in the package doc.
// Embedded structs are inlined. Numbers have the shortest form that reads back to the
// same float64.
func appendReply[R any](dst []byte, r *R) ([]byte, error) {
	return appendObject(dst, reflect.ValueOf(r).Elem())
}

// appendMembers adds the fields of r to the object that dst ends with.
func appendMembers[R any](dst []byte, r *R) ([]byte, error) {
	more, err := appendReply(nil, r)
	if err != nil || len(more) == len("{}") {
		return dst, err
	}
	dst = bytes.TrimSuffix(dst, []byte("}"))
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(dst, more[1:]...), nil
}

func appendObject(dst []byte, v reflect.Value) ([]byte, error) {
	dst = append(dst, '{')
	for _, sf := range reflect.VisibleFields(v.Type()) {
		name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous {
			continue
		}
		if name == "" || !sf.IsExported() {
			panic(fmt.Sprintf("fit: field %s of reply %v needs to be exported and a name in its json tag", sf.Name, v.Type()))
		}
		f := v.FieldByIndex(sf.Index)
		if option == "omitempty" && f.IsNil() {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = jsonlines.AppendString(dst, name)
		dst = append(dst, ':')
		var err error
		if dst, err = appendValue(dst, f); err != nil {
			return nil, fmt.Errorf("%s%w", name, err)
		}
	}
	return append(dst, '}'), nil
}

// appendValue appends v. Its error begins with the place within v.
func appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	switch v.Kind() {
	case reflect.Float64:
		return appendNumber(dst, v.Float())
	case reflect.Int:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.String:
		return jsonlines.AppendString(dst, v.String()), nil
	case reflect.Struct:
		dst, err := appendObject(dst, v)
		if err != nil {
			return nil, fmt.Errorf(".%w", err)
		}
		return dst, nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.Elem())
	case reflect.Slice:
		if list, ok := v.Interface().([]float64); ok {
			return appendNumbers(dst, list)
		}
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendValue(dst, v.Index(i)); err != nil {
				return nil, fmt.Errorf("[%d]%w", i, err)
			}
		}
		return append(dst, ']'), nil
	}
	panic(fmt.Sprintf("fit: no reply holds a %v", v.Type()))
}

// appendNumbers is appendValue for lists of numbers, without reflection.
func appendNumbers(dst []byte, list []float64) ([]byte, error) {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendNumber(dst, v); err != nil {
			return nil, fmt.Errorf("[%d]%w", i, err)
		}
	}
	return append(dst, ']'), nil
}

// appendNumber appends the shortest text that reads back to v, with an exponent below
// 1e-6 and from 1e21 on.
func appendNumber(dst []byte, v float64) ([]byte, error) {
	a := math.Abs(v)
	switch {
	case !(a <= math.MaxFloat64):
		return nil, fmt.Errorf(": the answer is %v, which no reply holds: the numbers of the request are too extreme", v)
	case a != 0 && (a < 1e-6 || a >= 1e21):
		return strconv.AppendFloat(dst, v, 'e', -1, 64), nil
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64), nil
}

// rowsOf returns the rows of a matrix, as replies hold them.
func rowsOf(m mat.Matrix) [][]float64 {
	r, _ := m.Dims()
	rows := make([][]float64, r)
	for i := range rows {
		rows[i] = mat.Row(nil, i, m)
	}
	return rows
}
