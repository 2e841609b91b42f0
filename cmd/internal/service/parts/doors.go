package parts

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hamlet/cmd/internal/door/doors"
	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// OpenDoors opens the doors that flags ask for. They ask a scorer over the connection to NATS. events takes the
// labels that they are told and make; nil: there are none. file may be nil.
func (s *Set) OpenDoors(f *doors.Flags, file *tokens.File, events stream.Appender) (*doors.Doors, error) {
	client, err := nats.NewClient(s.conn, s.model)
	if err != nil {
		return nil, err
	}
	cfg := gateway.Config{Asker: client, Tenants: s.tenants, Tokens: file, Asked: f.Asking.Asking(),
		Registerer: s.Registry, Log: s.Log}
	teacher := doors.Teacher{Events: events, Ask: f.Asking.Asking()}
	if f.AllowLearn {
		cfg.Teacher = teacher
	}
	listeners, err := s.listeners(f, teacher)
	if err != nil {
		return nil, err
	}
	opened, err := f.Open(cfg, listeners...)
	if err != nil {
		return nil, err
	}
	s.OnClose(opened.Close)
	return opened, nil
}

// listeners returns what learns from the doors' answers, by the flags.
func (s *Set) listeners(f *doors.Flags, teacher doors.Teacher) (all []doors.Listener, err error) {
	waiting, err := f.SelfLabelFlags.Connect(s.conn, s.NATS.NATSAccess, s.Log)
	if err != nil {
		return nil, err
	}
	if waiting != s.conn {
		s.OnClose(waiting.Close)
	}
	self, err := f.SelfLabelFlags.Service(waiting, s.model, teacher, s.Registry, s.Log)
	if err != nil {
		return nil, err
	}
	if self != nil {
		all = append(all, self)
	}
	journal, err := f.OracleFlags.Connect(s.conn, s.NATS.NATSAccess, s.Log)
	if err != nil {
		return nil, err
	}
	if journal != s.conn {
		s.OnClose(journal.Close)
	}
	oracle, err := f.OracleFlags.Service(journal, s.model, teacher, s.Registry, s.Log)
	if err != nil {
		return nil, err
	}
	if oracle != nil {
		all = append(all, oracle)
	}
	return all, nil
}

// PrintDoors says where doors listen.
func PrintDoors(w io.Writer, opened *doors.Doors) {
	addrs := opened.Addrs()
	for _, name := range slices.Sorted(maps.Keys(addrs)) {
		fmt.Fprintf(w, "  %-6s %s\n", name, strings.Join(addrs[name], ", "))
	}
}
