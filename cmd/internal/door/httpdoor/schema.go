package httpdoor

import (
	"maps"
	"reflect"

	"hamlet/cmd/internal/service/contract"
	"hamlet/stream"
)

// A schema is a part of the document, such as a JSON Schema (2020-12).
type schema = contract.Schema

func ref(name string) schema { return contract.Ref(name) }

func listOf(item schema, most int) schema { return contract.ListOf(item, most) }

// components returns the named schemas. Those of answers are made of their Go types.
func components() schema {
	all := schema{"Event": contract.Submitted(), "Request": contract.Request()}
	contract.AddStructs(all, map[string]reflect.Type{
		"Verdict":  reflect.TypeFor[stream.Verdict](),
		"Info":     reflect.TypeFor[stream.Info](),
		"Error":    reflect.TypeFor[errorAnswer](),
		"Accepted": reflect.TypeFor[acceptedAnswer](),
	}, fieldTexts)
	return all
}

// fieldTexts describe the fields of answers.
var fieldTexts = func() map[string]string {
	texts := maps.Clone(contract.Texts)
	texts["Error.error"] = "What was wrong, in a sentence."
	texts["Accepted.accepted"] = "How many events Kafka has."
	return texts
}()
