package from010

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"hamlet/state"
	"hamlet/stream"
)

// openKafka returns the partitions of all topics that kfake keeps in a folder, by topic. Its meta.json
// says that it keeps any, its topics.json which:
//
//	{"version":1,"topics":[{"name":"hamlet.events.default","partitions":1, …}, …]}
//
// Partition 0 of a topic is in partitions/TOPIC-0, with the topic's name as in a URL.
func openKafka(folder string, log *slog.Logger) (all []*partition, err error) {
	parts := filepath.Join(folder, "partitions")
	folders, err := os.ReadDir(parts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	left := map[string]bool{}
	for _, e := range folders {
		files, err := os.ReadDir(filepath.Join(parts, e.Name()))
		if err != nil {
			return nil, err
		}
		left[e.Name()] = len(files) > 0
	}
	var meta struct {
		Version int `json:"version"`
	}
	var list struct {
		Version int     `json:"version"`
		Topics  []topic `json:"topics"`
	}
	var brokers struct {
		Version int               `json:"version"`
		Configs map[string]string `json:"configs"`
	}
	for _, file := range []struct {
		name string
		into any
		has  *int
	}{{"meta.json", &meta, &meta.Version}, {"topics.json", &list, &list.Version}, {"broker_configs.json", &brokers,
		&brokers.Version}} {
		path := filepath.Join(folder, file.name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was never started; what it keeps all the same is found below
		}
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, file.into); err != nil || *file.has != 1 {
			return nil, &DamagedError{path, 0, errors.Join(errBroken, err)}
		}
	}
	seen := map[string]bool{}
	for i := range list.Topics {
		t := &list.Topics[i]
		if !t.valid() || seen[t.Name] {
			return nil, &DamagedError{filepath.Join(folder, "topics.json"), 0,
				fmt.Errorf("%w: topic %q of %d partitions", errBroken, t.Name, t.Partitions)}
		}
		seen[t.Name] = true
	}
	if err := refused(list.Topics); err != nil {
		return nil, err
	}
	for i := range list.Topics {
		t := &list.Topics[i]
		name := func(n int) string { return fmt.Sprintf("%s-%d", url.PathEscape(t.Name), n) }
		if t.Partitions > 1 {
			log.Warn("a topic is left out that is not hamlet's own and has several partitions", "topic", t.Name,
				"partitions", t.Partitions)
			for n := range t.Partitions {
				delete(left, name(n))
			}
			continue
		}
		p, err := openPartition(filepath.Join(parts, name(0)), partition{
			topic: t.Name, sparse: strings.Contains(t.Configs["cleanup.policy"], "compact"),
			forever: t.Configs["retention.ms"] == "-1" && cmp.Or(t.Configs["retention.bytes"],
				brokers.Configs["log.retention.bytes"], "-1") == "-1",
		}, log)
		if err != nil {
			return nil, err
		}
		delete(left, name(0))
		all = append(all, p)
	}
	for name, has := range left {
		if has {
			return nil, &DamagedError{filepath.Join(folder, "topics.json"), 0,
				fmt.Errorf("no topic has the files in %s", filepath.Join(parts, name))}
		}
	}
	slices.SortFunc(all, func(a, b *partition) int { return strings.Compare(a.topic, b.topic) })
	return all, nil
}

// A topic is one of topics.json.
type topic struct {
	Name       string            `json:"name"`
	Partitions int               `json:"partitions"`
	Configs    map[string]string `json:"configs"`
}

var topicName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)
})

// valid reports whether a name is one of a topic, and so of a folder.
func (t *topic) valid() bool {
	if t.Name == "." || t.Name == ".." || t.Partitions < 1 || t.Partitions > 100_000 {
		return false
	}
	return topicName().MatchString(t.Name)
}

// refused returns why no model here can go on with its topics, and what leads out. The error wraps
// [state.ErrPartitions].
func refused(topics []topic) error {
	ordered := map[string]bool{} // models that learnt several partitions in one order
	for i := range topics {
		if model, is := strings.CutPrefix(topics[i].Name, "hamlet.order."); is {
			ordered[model] = true
		}
	}
	const (
		leads = "model %[1]s: %[2]w. Go on with hamlet 0.1.0 here, or start it, up --data THIS, and beside it "
		order = "hamlet-0.1.0 order export FILE --model %[1]s"
		merge = "this program's hamlet log merge --from %[1]s --to NEW and hamlet log export FILE --model NEW"
		then  = ". Then start this program on another directory, up --data OTHER, " +
			"and beside it hamlet log import FILE --model %[1]s"
	)
	var errs []error
	for _, model := range slices.Sorted(maps.Keys(ordered)) {
		errs = append(errs, fmt.Errorf(leads+order+then, model, state.ErrPartitions))
	}
	for i := range topics {
		t := &topics[i]
		if t.Partitions < 2 || !strings.HasPrefix(t.Name, "hamlet.") {
			continue
		}
		model, events := strings.CutPrefix(t.Name, stream.EventsTopic(""))
		switch {
		case events && !ordered[model]: // each partition has a model
			errs = append(errs, fmt.Errorf(leads+merge+then, model, state.ErrPartitions))
		case !events && len(ordered) == 0:
			errs = append(errs, fmt.Errorf("topic %s: %w, and this has %d", t.Name, state.ErrPartitions, t.Partitions))
		}
	}
	return errors.Join(errs...)
}
