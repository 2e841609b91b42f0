package contract

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"hamlet/stream/eventpb"
)

// publishedProtobuf has a line for each field and word that a program may have been built
// with. No line of it ever changes or goes. Those below noLongerWritten are in no file any
// more: their names are not used again.
const (
	publishedProtobuf = root + "deploy/contracts/protobuf.txt"
	noLongerWritten   = "# No longer written since 0.2.0:\n"
)

// numbered returns a line for each field of the messages and each word of the enums in files:
// its owner, number, name and type.
func numbered(files ...protoreflect.FileDescriptor) (all []string) {
	enum := func(e protoreflect.EnumDescriptors) {
		for i := range e.Len() {
			for j := range e.Get(i).Values().Len() {
				v := e.Get(i).Values().Get(j)
				all = append(all, fmt.Sprintf("%s %d %s", e.Get(i).FullName(), v.Number(), v.Name()))
			}
		}
	}
	var message func(m protoreflect.MessageDescriptors)
	message = func(m protoreflect.MessageDescriptors) {
		for i := range m.Len() {
			for j := range m.Get(i).Fields().Len() {
				all = append(all, fieldLine(m.Get(i).Fields().Get(j)))
			}
			enum(m.Get(i).Enums())
			message(m.Get(i).Messages())
		}
	}
	for _, f := range files {
		enum(f.Enums())
		message(f.Messages())
	}
	return all
}

func fieldLine(f protoreflect.FieldDescriptor) string {
	words := []string{string(f.Parent().FullName()), fmt.Sprint(f.Number()), string(f.Name()), f.Cardinality().String(), f.Kind().String()}
	switch {
	case f.Message() != nil:
		words = append(words, string(f.Message().FullName()))
	case f.Enum() != nil:
		words = append(words, string(f.Enum().FullName()))
	}
	if f.IsPacked() {
		words = append(words, "packed")
	}
	if f.HasPresence() && f.Message() == nil {
		words = append(words, "presence")
	}
	if o := f.ContainingOneof(); o != nil {
		words = append(words, "oneof", string(o.Name()))
	}
	return strings.Join(words, " ")
}

// compare returns what of the published lines has changed, and what is new.
func compare(published, now []string) (changed, added []string) {
	for _, line := range published {
		if !slices.Contains(now, line) {
			changed = append(changed, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(published, line) {
			added = append(added, line)
		}
	}
	return changed, added
}

// Programs that were built with an earlier event.proto read what is written now as it is meant:
// fields and words are only added. What order.proto had is not written any more.
func TestProtobufIsCompatible(t *testing.T) {
	written, gone, _ := strings.Cut(file(t, publishedProtobuf), noLongerWritten)
	published := strings.FieldsFunc(written, func(r rune) bool { return r == '\n' })
	now := numbered(eventpb.File_event_proto)
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(gone))); sum != "72b42c59d4e7b028dee81bef9ba4b3a790a1b9bf368654206d1ea20555a54392" {
		t.Errorf("a line below %q has changed or gone: their SHA-256 is %s", noLongerWritten, sum)
	}
	for _, line := range now {
		if owner, _, _ := strings.Cut(line, " "); strings.Contains("\n"+gone, "\n"+owner+" ") {
			t.Errorf("%s: a program that was built with %s took it for something else", line, owner)
		}
	}
	changed, added := compare(published, now)
	for _, line := range changed {
		t.Errorf("published and gone or changed: %s\nGive what is new another number and another name; what is not used any more stays.", line)
	}
	if *update && len(changed) == 0 {
		if err := os.WriteFile(publishedProtobuf, []byte(strings.Join(append(published, added...), "\n")+"\n"+noLongerWritten+gone), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, line := range added {
		t.Errorf("not in %s: %s: add it with -update, once it is right for ever", publishedProtobuf, line)
	}
}

// Each change that would break a program is found.
func TestIncompatibleChangesAreFound(t *testing.T) {
	now := numbered(eventpb.File_event_proto)
	for _, change := range [][2]string{
		{"Event 11 own_only", "Event 12 own_only"}, {"Event 6 of ", "Event 6 about "}, {"Event 1 id optional string", "Event 1 id optional bytes"},
		{"Action 4 ACTION_ASSUME", "Action 5 ACTION_ASSUME"}, {"Label 2 LABEL_SPAM", "Label 2 LABEL_JUNK"}, {"repeated double packed", "repeated double"},
		{"text optional string presence oneof body", "text optional string"}, {"Event 7 label optional enum hamlet.v1.Label", "Event 7 label optional enum hamlet.v1.Action"},
	} {
		later := strings.Split(strings.ReplaceAll(strings.Join(now, "\n"), change[0], change[1]), "\n")
		if changed, added := compare(now, later); len(changed) != 1 || len(added) != 1 {
			t.Errorf("%v: changed %v, added %v", change, changed, added)
		}
	}
	if changed, _ := compare(now, now[1:]); len(changed) != 1 {
		t.Error("a removed line is not found")
	}
}
