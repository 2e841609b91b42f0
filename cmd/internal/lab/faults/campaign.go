package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A campaign injects faults and checks what they leave.
type campaign struct {
	Command
	seed    uint64
	hamlet  string // the program under test
	dir     string
	err     io.Writer // progress
	ports   *ports
	guard   *guard
	servers *servers // nil if no fault of a service is chosen
	proxies map[target]*proxy
	locks   map[target]*sync.Mutex // one fault at a time for each target
	plan    *plan                  // of the services; nil: none of their faults is chosen
	single  *plan                  // of the one machine; nil: none of its faults is chosen
	skewed  string                 // path of a hamlet whose clock can be set; "": it could not be built
	disks   []string               // the file systems that the machine's disk may have
	machine *system                // of the era
	disk    *disk                  // of machine; nil: it has none of its own
	table   *Table
	begun   time.Time
	log     *os.File // a line for each fault

	systems []*system

	mu     sync.Mutex
	round  *round
	active []window // of the round
}

const (
	faultsOfRound = 10
	mostOfMachine = 3 // faults of a round of the machine, one after the other
	roundsOfEra   = 8 // then a new model begins: a replay of the log takes a second by now
	settleWithin  = 2 * time.Minute
)

// A window is the time in which a fault may have had an effect.
type window struct {
	kind     string
	from, to time.Time // to is zero while it lasts
}

// after is how long after its end a fault may still explain a pause.
const after = 4 * time.Second

// run runs the campaign and returns its table, also with an error.
func (c *campaign) run(ctx context.Context) (*Table, error) {
	c.begun, c.table = time.Now(), newTable(c.seed)
	err := c.prepare(ctx)
	c.begun = time.Now() // the preparations may take minutes, and inject nothing
	if err == nil {
		err = c.eras(ctx)
	}
	return c.table, errors.Join(err, c.end())
}

// prepare starts guard, proxies and servers.
func (c *campaign) prepare(ctx context.Context) (err error) {
	if c.Keep != "" {
		if err := os.MkdirAll(c.Keep, 0o700); err != nil {
			return err
		}
		c.dir, err = filepath.Abs(c.Keep)
	} else {
		c.dir, err = os.MkdirTemp("", "hamlet-faults-")
	}
	if err != nil {
		return err
	}
	if c.log, err = os.OpenFile(filepath.Join(c.dir, "faults.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY,
		0o600); err != nil {
		return err
	}
	c.ports, c.proxies, c.locks = newPorts(), map[target]*proxy{}, map[target]*sync.Mutex{}
	for _, choice := range slices.Concat(choices, machineChoices) {
		if c.locks[choice.target] == nil {
			c.locks[choice.target] = new(sync.Mutex)
		}
	}
	if err := c.choose(ctx); err != nil {
		return err
	}
	serversDir := filepath.Join(c.dir, "servers")
	if c.plan == nil {
		c.guard, err = startGuard("", serversDir, c.removed())
		return err
	}
	kafkaProxy := c.ports.address()
	if c.servers, err = newServers(c.Servers, serversDir, kafkaProxy, c.ports); err != nil {
		return err
	}
	if c.guard, err = startGuard(c.servers.script, serversDir, c.removed()); err != nil {
		return err
	}
	for _, x := range []struct {
		target         target
		addr, upstream string
		flipper        func() flipper
	}{
		{kafka, kafkaProxy, c.servers.kafka, func() flipper { return new(kafkaFlipper) }},
		{nats, c.ports.address(), c.servers.nats, nil},
		{redis, c.ports.address(), c.servers.redis, func() flipper { return new(redisFlipper) }},
	} {
		if c.proxies[x.target], err = listenProxy(x.addr, x.upstream, x.flipper); err != nil {
			return err
		}
	}
	c.say("starting kafka, nats and redis in %s", serversDir)
	return c.servers.Start(ctx)
}

// choose makes the plans of the faults that are chosen and can be injected here.
func (c *campaign) choose(ctx context.Context) (err error) {
	of, one := chosen(choices, c.Only), chosen(machineChoices, c.Only)
	if slices.ContainsFunc(slices.Concat(of, one), func(x choice) bool { return x.action == setClock }) {
		tree := filepath.Dir(filepath.Dir(c.Servers))
		c.say("building hamlet with a clock that can be set, from %s", tree)
		if c.skewed, err = buildSkewed(ctx, tree, filepath.Join(c.dir, "skewed")); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.leaveOut(setClock, err.Error())
		}
	}
	if wanted := slices.DeleteFunc(slices.Clone(one), func(x choice) bool {
		return x.action != power && x.action != full
	}); len(wanted) > 0 {
		c.probeDisks(wanted)
	}
	left := func(x choice) bool {
		return slices.ContainsFunc(c.table.Left, func(l Left) bool { return l.Fault == string(x.action) })
	}
	of, one = slices.DeleteFunc(slices.Clone(of), left), slices.DeleteFunc(slices.Clone(one), left)
	if len(of) > 0 {
		c.plan = newPlan(c.seed, of)
	}
	if len(one) > 0 {
		c.single = newPlan(c.seed, one)
	}
	if c.plan == nil && c.single == nil {
		return errors.New("none of the faults can be injected here")
	}
	return nil
}

// leaveOut notes that a kind of fault cannot be injected here.
func (c *campaign) leaveOut(a action, why string) {
	c.table.Left = append(c.table.Left, Left{Fault: string(a), Why: why})
	c.say("not injected: %s: %s", a, why)
}

// removed is the directory that goes at the end, "" if it is to be kept.
func (c *campaign) removed() string {
	if c.Keep != "" {
		return ""
	}
	return c.dir
}

// end stops everything.
func (c *campaign) end() error {
	begun := time.Now()
	var wg sync.WaitGroup
	for _, s := range c.systems {
		wg.Go(s.halt)
	}
	wg.Wait()
	for _, x := range c.proxies {
		x.Close()
	}
	errs := []error{c.endMachine()}
	if c.servers != nil {
		if _, err := os.Stat(c.servers.dir); err == nil {
			errs = append(errs, c.servers.Stop())
		}
	}
	if c.guard != nil {
		errs = append(errs, c.guard.dismiss())
	}
	if c.log != nil {
		c.log.Close()
	}
	if dir := c.removed(); dir != "" {
		errs = append(errs, os.RemoveAll(dir))
	}
	c.say("stopped everything in %.1f s", time.Since(begun).Seconds())
	return errors.Join(errs...)
}

func (c *campaign) say(format string, args ...any) {
	fmt.Fprintf(c.err, "%7s  %s\n", time.Since(c.begun).Round(time.Second), fmt.Sprintf(format, args...))
}

// process adds a process to a system.
func (c *campaign) process(s *system, name target, args []string) error {
	addr := c.ports.address()
	args = append(args, "--model", s.model, "--http", addr)
	s.processes[name] = &process{
		name: string(name), args: args, http: addr, log: filepath.Join(c.dir, s.model+"-"+string(name)+".log"),
		launch: launcher{c.hamlet, c.guard.group()}, died: c.died,
	}
	if c.skewed == "" {
		return nil
	}
	clock, err := newClock(filepath.Join(c.dir, s.model+"-"+string(name)+".clock"))
	s.processes[name].launch.hamlet, s.processes[name].clock = c.skewed, clock
	return err
}

// eras runs rounds until the time is over.
func (c *campaign) eras(ctx context.Context) error {
	stop := c.progress()
	defer stop()
	for era := 1; ; era++ {
		var of, one []*system // the services and hamlet up; the machine
		if c.plan != nil {
			services, err := newServices(c, era)
			if err != nil {
				return err
			}
			up, err := newUp(c, upAll, era, filepath.Join(c.dir, fmt.Sprintf("up-%d", era)))
			if err != nil {
				return err
			}
			of = []*system{services, up}
		}
		if c.single != nil {
			var err error
			if c.machine, err = newMachine(c, era); err != nil {
				return err
			}
			one = []*system{c.machine}
		}
		c.systems = slices.Concat(of, one)
		for _, s := range c.systems {
			s.start()
		}
		settled := true
		for number := 0; number < roundsOfEra && settled; number++ { // a new model may fare better
			for _, r := range []struct {
				systems []*system
				inject  func(context.Context) error
			}{{of, c.injectTogether}, {one, c.injectInTurn}} {
				if len(r.systems) == 0 || !settled {
					continue
				}
				c.mu.Lock()
				c.round, c.active = &round{Died: map[string]int{}, Named: map[string]int{}, Same: true}, nil
				c.mu.Unlock()
				if err := c.runRound(ctx, r.systems, number, r.inject); err != nil {
					return err
				}
				c.mu.Lock()
				c.table.add(c.round)
				settled = c.round.Settled
				c.mu.Unlock()
				if time.Since(c.begun) >= c.For {
					return nil
				}
			}
		}
		var wg sync.WaitGroup
		for _, s := range c.systems {
			wg.Go(s.halt)
		}
		wg.Wait()
		c.systems = nil
		if err := c.endMachine(); err != nil {
			return err
		}
	}
}

// injectTogether injects the faults of a round of the services, several at a time.
func (c *campaign) injectTogether(ctx context.Context) error {
	if err := c.servers.CopyRedis(); err != nil {
		return err
	}
	var injecting sync.WaitGroup
	for _, f := range c.plan.round(faultsOfRound) {
		wait(ctx, f.After)
		if ctx.Err() != nil {
			break
		}
		injecting.Go(func() { c.inject(ctx, f) })
	}
	injecting.Wait()
	c.clear()
	return c.servers.Start(ctx)
}

// injectInTurn injects the faults of a round of the machine, one after the other.
func (c *campaign) injectInTurn(ctx context.Context) error {
	for _, f := range c.single.round(1 + c.single.random.IntN(mostOfMachine)) {
		wait(ctx, f.After)
		if ctx.Err() != nil {
			break
		}
		c.inject(ctx, f)
	}
	return nil
}

// runRound injects the faults of a round under load, lets everything settle and checks it.
func (c *campaign) runRound(ctx context.Context, systems []*system, number int,
	inject func(context.Context) error) error {
	loaded, unload := context.WithCancel(ctx)
	defer unload()
	stopSending := make(chan struct{})
	var sending, asking sync.WaitGroup
	sendErrs := make([]error, len(systems))
	acked := 0
	for i, s := range systems {
		acked += s.sender.ledger.count()
		sending.Go(func() { sendErrs[i] = s.sender.run(loaded, stopSending) })
		asking.Go(func() { s.asker.run(loaded) })
	}
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	var watchers sync.WaitGroup
	for _, s := range systems {
		watchers.Go(func() { c.watchLearning(watching, s) })
	}
	if number == 0 { // there must be something that can be lost
		if err := c.settleAll(ctx, systems, nil); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	startErr := inject(ctx)
	wait(ctx, 700*time.Millisecond) // some events without a fault: a save repairs a chunk with a flipped byte
	close(stopSending)
	sent := make(chan struct{})
	go func() { sending.Wait(); close(sent) }()
	select {
	case <-sent:
	case <-time.After(settleWithin):
		c.problem("events are not acknowledged within %v after the last fault", settleWithin)
	}
	unwatch()
	watchers.Wait()
	settled := make([]int64, len(systems))
	err := startErr
	if err == nil {
		err = c.settleAll(ctx, systems, settled)
	}
	unload()
	asking.Wait()
	sending.Wait()
	for _, s := range systems {
		s.asker.rest()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		c.problem("not settled within %v after the last fault: %v", settleWithin, err)
		c.round.Same = false
		return nil
	}
	c.round.Settled = true
	for i, s := range systems {
		if err := s.verify(ctx, settled[i], c.round); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.problem("%s cannot be verified: %v", s.name, err)
			c.round.Same, c.round.Settled = false, false
		}
		c.round.Sent += s.sender.ledger.count()
	}
	c.round.Sent -= acked
	return errors.Join(sendErrs...)
}

// settleAll waits until every system has settled.
func (c *campaign) settleAll(ctx context.Context, systems []*system, ends []int64) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for i, s := range systems {
		if ends == nil { // under load nothing settles: wait for the first model
			if err := s.served(ctx); err != nil {
				return err
			}
			continue
		}
		var err error
		if ends[i], err = s.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// inject injects a fault and waits until it is over.
func (c *campaign) inject(ctx context.Context, f fault) {
	c.locks[f.Target].Lock()
	defer c.locks[f.Target].Unlock()
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	at := len(c.active)
	c.active = append(c.active, window{kind: f.kind(), from: time.Now()})
	c.mu.Unlock()
	fmt.Fprintf(c.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), f)
	injected, err := c.do(ctx, f)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[at].to = time.Now()
	if injected {
		c.round.Injected = append(c.round.Injected, f)
	}
	if err != nil {
		c.round.Died[f.kind()]++
		c.round.Problems = append(c.round.Problems, fmt.Sprintf("%s: %v", f, err))
	}
}

// do does what a fault says. It reports whether that was possible.
func (c *campaign) do(ctx context.Context, f fault) (bool, error) {
	if x := c.proxies[f.Target]; x != nil {
		switch f.Action {
		case cut:
			x.Refuse(true)
			x.Cut()
			wait(ctx, f.Hold)
			x.Refuse(false)
			return true, nil
		case slow:
			x.Slow(f.Rate)
			wait(ctx, f.Hold)
			x.Slow(0)
			return true, nil
		case flipByte:
			return x.Flip(f.Hold), nil
		case kill:
			err := c.servers.Kill(ctx, f.Target)
			wait(ctx, f.Hold)
			return true, errors.Join(err, c.servers.Start(ctx))
		case restart:
			return true, c.servers.Restart(ctx, f.Target)
		case stop:
			return true, c.servers.Pause(ctx, f.Target, f.Hold)
		case setBack:
			return true, c.servers.SetRedisBack(ctx)
		case empty:
			return true, flushRedis(c.servers.redis)
		}
		panic("unknown action " + f.Action)
	}
	var p *process
	for _, s := range c.systems {
		if s.processes[f.Target] != nil {
			p = s.processes[f.Target]
		}
	}
	switch f.Action {
	case kill:
		p.Kill()
		wait(ctx, f.Hold)
		p.release()
		return true, nil
	case restart:
		err := p.Terminate()
		p.release()
		return true, err
	case stop:
		err := p.Pause(ctx, f.Hold)
		return err == nil, nil // it may have ended before
	case setClock:
		return true, c.moveClock(ctx, p, f)
	case power:
		return true, c.cutPower(ctx, p, f.Hold)
	case full:
		return true, c.fillDisk(ctx, c.machine, p, f)
	case flipByte:
		injected, named, err := c.rotMachine(ctx, p, f)
		if named {
			c.mu.Lock()
			c.round.Named[f.kind()]++
			c.mu.Unlock()
		}
		return injected, err
	}
	panic("unknown action " + f.Action)
}

// flushRedis removes all keys while clients are connected.
func flushRedis(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil // Redis does not run: it is not emptied
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = conn.Write([]byte("FLUSHALL\r\n"))
	reply := make([]byte, 5)
	if err == nil {
		_, err = io.ReadFull(conn, reply)
	}
	if err == nil && string(reply) != "+OK\r\n" {
		err = fmt.Errorf("FLUSHALL: %q", reply)
	}
	return err
}

// clear ends what proxies do.
func (c *campaign) clear() {
	for _, x := range c.proxies {
		x.Refuse(false)
		x.Slow(0)
	}
}

func (c *campaign) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round.Problems = append(c.round.Problems, fmt.Sprintf(format, args...))
}

// died notes that a process ended by itself. The faults around that time did not leave
// it whole.
func (c *campaign) died(name, how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round == nil {
		return
	}
	kinds := c.around(time.Now(), time.Now())
	for _, kind := range kinds {
		c.round.Died[kind]++
	}
	c.round.Problems = append(c.round.Problems, fmt.Sprintf("%s %s, around: %s", name, how, strings.Join(kinds, ", ")))
	fmt.Fprintf(c.log, "%s ! %s %s\n", time.Now().UTC().Format("15:04:05.000"), name, how)
}

// around returns the kinds of faults that may have had an effect between two times.
func (c *campaign) around(from, to time.Time) (kinds []string) {
	seen := map[string]bool{}
	for _, w := range c.active {
		if w.from.Before(to) && (w.to.IsZero() || w.to.Add(after).After(from)) && !seen[w.kind] {
			seen[w.kind] = true
			kinds = append(kinds, w.kind)
		}
	}
	return kinds
}

// shortest is the shortest pause that is noted.
const shortest = 200 * time.Millisecond

// paused notes a time without progress.
func (c *campaign) paused(scoring bool, from, to time.Time) {
	if to.Sub(from) < shortest {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round != nil {
		c.round.Pauses = append(c.round.Pauses,
			pausedFor{Scoring: scoring, Took: to.Sub(from), Kinds: c.around(from, to)})
	}
}

func (c *campaign) scored(from, to time.Time) { c.paused(true, from, to) }

// watchLearning notes the times in which a system learns nothing.
func (c *campaign) watchLearning(ctx context.Context, s *system) {
	client := &http.Client{Timeout: 300 * time.Millisecond}
	defer client.CloseIdleConnections()
	var last time.Time // the round begins with the first progress
	for {
		if s.progressed(ctx, client) {
			now := time.Now()
			if !last.IsZero() {
				c.paused(false, last, now)
			}
			last = now
		}
		wait(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			if !last.IsZero() {
				c.paused(false, last, time.Now())
			}
			return
		}
	}
}

// progress prints a line every ten seconds until the returned function is called.
func (c *campaign) progress() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			wait(ctx, 10*time.Second)
			if ctx.Err() != nil {
				return
			}
			c.mu.Lock()
			t := c.table.Total
			line := fmt.Sprintf("%d faults, %d survived; same bytes %d of %d; %d events, %d answers; lost %d, wrong %d",
				t.Injected, t.Survived, t.Same, t.Rounds, c.table.Sent, c.table.Answers, t.Lost, t.Wrong)
			c.mu.Unlock()
			c.say("%s", line)
		}
	})
	return func() { cancel(); wg.Wait() }
}
