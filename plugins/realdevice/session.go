package realdevice

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/attach"
	"github.com/service-dev/service/plugins/internal/glassespage"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

const (
	// maxEvents limits the events that wait for the session. Beyond it, the links wait.
	maxEvents = 256
	// leaveTime is how long clearing the glasses may take when the session ends. The host waits slightly longer.
	leaveTime = time.Second
	openTime  = 20 * time.Second
)

// session is one pair of real glasses, run by one goroutine. Each open link has two more goroutines, which only
// transfer bytes.
type session struct {
	id      string
	adapter *adapter
	glasses *driver.Glasses
	kind    kinds.Kind
	out     *attach.Frames
	log     *slog.Logger
	newID   func() string
	wall    func() int64

	page     *glassespage.Page // nil unless a browser page provides the links
	wanted   string            // the only pair that the page may use; "" for any
	pair     *pluginv1.Pair
	links    map[string]*link // open links, by key
	rssi     map[string]int
	infos    map[string]driver.Info
	problem  error               // reason why a link is down; nil once one is up
	check    *panelcheck.Check   // the check of the panel on the page; nil if there was none
	said     *pluginv1.PairPanel // the user's answers about the panel on the page; nil if there are none
	reported *pluginv1.Hardware
	mark     mark

	events  chan event
	changed chan struct{}   // has one element if the page may have changed
	life    context.Context // context of the links
	end     context.CancelFunc
	workers sync.WaitGroup
	left    chan struct{} // closed when the glasses have been cleared
}

// event is a message from a worker to the session.
type event struct {
	driver.Event
	opened *link          // set for driver.LinkUp
	found  *pluginv1.Pair // the pair that was found for the link
	rssi   map[string]int
	err    error                    // set for driver.LinkDown
	panel  *glassespage.PanelAnswer // the user's action about the panel on the page
}

// conn is an open connection of a carrier. Write waits until the carrier has accepted the value.
type conn interface {
	Notifications() <-chan []byte // closed when the connection ends; Err returns the reason
	Err() error
	MTU() int // 0 if unknown
	Write(ctx context.Context, data []byte, withResponse bool) error
	Close()
}

// link is one open connection.
type link struct {
	conn   conn
	writes chan driver.Write // holds at most one write
	end    context.CancelFunc
}

func newSession(ctx context.Context, a *adapter, o *pluginv1.AttachOpen, to attach.Sender) (*session, error) {
	model, snapshot, err := attach.ParseOpen(o)
	if err != nil {
		return nil, err
	}
	kind, ok := kinds.Of(model.ID)
	switch {
	case !ok:
		return nil, attach.Invalid("this adapter has no driver for " + model.ID)
	case o.GetVirtualClock():
		return nil, attach.Invalid("real glasses have no virtual time")
	}
	pair := o.GetPair()
	if pair == nil {
		pair = &pluginv1.Pair{}
	}
	s := &session{
		id: o.GetSessionId(), adapter: a, kind: kind, log: a.log.With("session", o.GetSessionId()), newID: attach.NewIDs(),
		pair: pair, links: map[string]*link{}, rssi: map[string]int{}, infos: map[string]driver.Info{},
		events: make(chan event, maxEvents), changed: make(chan struct{}, 1), left: make(chan struct{}),
	}
	if !pair.GetOrOther() {
		s.wanted = pair.GetName()
	}
	s.mark = mark{stateDir: a.configDir()}
	s.out = &attach.Frames{To: to, Log: s.log}
	begin := time.Now()
	s.wall = func() int64 { return begin.UnixMilli() + time.Since(begin).Milliseconds() }
	s.glasses = driver.NewGlasses(model, kind.New(panelOf(pair)), device.Options{Snapshot: snapshot, NewID: s.newID})
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.chooseCarrier(ctx, o.GetVia()); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// Serve implements attach.Session.
func (s *session) Serve(ctx context.Context, in <-chan *pluginv1.AttachRequest) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.out.Broken == nil {
		s.settle()
		s.arm(timer)
		select {
		case m, ok := <-in:
			if !ok {
				return nil
			}
			s.request(m)
		case e := <-s.events:
			s.handle(e)
		case <-s.changed: // settle reports the change
		case <-timer.C:
			s.glasses.Tick(s.wall())
		case <-ctx.Done():
			return nil
		}
	}
	return s.out.Broken
}

// arm sets the timer to the next step of the glasses.
func (s *session) arm(timer *time.Timer) {
	timer.Stop()
	if at, ok := s.glasses.Next(); ok {
		timer.Reset(time.Duration(max(0, at-s.wall())) * time.Millisecond)
	}
}

// Close clears and disconnects the glasses.
func (s *session) Close() {
	s.glasses.Close(s.wall())
	over := time.NewTimer(leaveTime)
	defer over.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.out.Broken = errors.New("the session has ended") // further frames are not received
	for s.settle(); !s.glasses.Closed() && len(s.links) > 0; s.settle() {
		s.arm(timer)
		select {
		case e := <-s.events:
			s.handle(e)
		case <-s.changed:
		case <-timer.C:
			s.glasses.Tick(s.wall())
		case <-over.C:
			s.log.Warn("failed to clear the glasses in time")
			s.links = nil
		}
	}
	s.unmark()
	s.end()
	s.workers.Wait()
	if s.page != nil {
		s.page.Close()
	}
	s.adapter.release(s)
}

func (s *session) request(m *pluginv1.AttachRequest) {
	if p := m.GetPanel(); p != nil {
		s.setPanel(p)
		return
	}
	f, body, err := attach.ParseRequest(m)
	if err != nil {
		id := f.ID
		if id == "" {
			id = s.newID()
		}
		s.out.Put(glasses.TypeError, id, s.wall(), err)
		return
	}
	s.glasses.Handle(s.wall(), f, body)
}

// settle carries out the requests of the glasses and reports changes.
func (s *session) settle() {
	s.markShown()
	for outs := s.glasses.Take(); len(outs) > 0; outs = s.glasses.Take() {
		for _, o := range outs {
			switch {
			case o.Frame != nil:
				s.out.Send(*o.Frame, o.Body)
			case o.Write != nil:
				if l := s.links[o.Write.Link]; l != nil {
					l.writes <- *o.Write // has capacity: the glasses wait for the event of the last write
				}
			case o.Connect != nil:
				pair := s.pair // this goroutine replaces it but does not modify it
				s.workers.Go(func() { s.open(*o.Connect, pair) })
			case o.Drop != "":
				if l := s.links[o.Drop]; l != nil {
					l.end()
				}
			case o.Info != nil:
				s.infos[o.Info.Link] = merged(s.infos[o.Info.Link], *o.Info)
			case o.Tested != nil && s.check != nil:
				s.check.Tested(s.wall(), *o.Tested)
				s.endCheck()
			case o.Note != "":
				s.log.Info("received a report from the glasses", "event", o.Note)
			}
		}
	}
	s.report()
}

func merged(old, update driver.Info) driver.Info {
	if update.Serial != "" {
		old.Serial = update.Serial
	}
	if update.Firmware != "" {
		old.Firmware = update.Firmware
	}
	if update.BatteryLevel != nil {
		old.BatteryLevel = update.BatteryLevel
	}
	return old
}

func (s *session) handle(e event) {
	if e.panel != nil {
		s.answer(*e.panel)
		return
	}
	if e.found != nil {
		s.pair, s.rssi = withFound(s.pair, e.found), e.rssi
	}
	switch e.Kind {
	case driver.LinkUp:
		s.links[e.Link], s.problem = e.opened, nil
		if s.pair.GetOrOther() { // the session now uses this pair
			s.pair, _ = proto.Clone(s.pair).(*pluginv1.Pair)
			s.pair.OrOther = false
		}
		s.workers.Go(func() { s.read(e.Link, e.opened) })
	case driver.LinkDown:
		delete(s.links, e.Link)
		s.problem = e.err
		if e.Problem == problem.CodeNotInRange { // its address may have changed
			s.pair, _ = proto.Clone(s.pair).(*pluginv1.Pair)
			s.pair.Links = nil
		}
	}
	s.glasses.Event(s.wall(), e.Event)
}

// report sends the state of the hardware if it has changed.
func (s *session) report() {
	h := &pluginv1.Hardware{Pair: s.pair, Carrier: viaBlueZ, Steps: s.kind.Steps, Panel: s.said,
		Uncleared: s.isUncleared()}
	if s.problem != nil {
		h.Problem = problemOf(s.problem)
	}
	for _, l := range s.glasses.Links() {
		one := &pluginv1.Link{Key: l.Key, State: "down", Mtu: int32(l.MTU), Rssi: int32(s.rssi[l.Key]),
			Firmware: s.infos[l.Key].Firmware}
		if level := s.infos[l.Key].BatteryLevel; level != nil {
			one.BatteryPercent = int32(*level)
		}
		switch {
		case l.Up:
			one.State = "up"
		case l.Opening:
			one.State = "opening"
		}
		if l.Problem == problem.CodeSmallMTU && !l.Up {
			h.Problem = problemOf(problem.New(l.Problem, "the connection carries too few bytes at once for these glasses",
				"Update BlueZ to version 5.62 or later."))
		}
		h.Links = append(h.Links, one)
	}
	if s.page != nil {
		s.showPage(h)
	}
	if proto.Equal(h, s.reported) || s.out.Broken != nil {
		return
	}
	s.reported = h
	s.out.Broken = s.out.To.Send(&pluginv1.AttachResponse{Message: &pluginv1.AttachResponse_Hardware{Hardware: h}})
}
