package realdevice

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// tell passes an event to the session. It waits while too many events are queued. Meanwhile, the connection drops
// data that it cannot buffer.
func (s *session) tell(ctx context.Context, e event) {
	select {
	case s.events <- e:
	case <-ctx.Done():
	}
}

// open opens one link of a pair. If the pair or the address of the peripheral is unknown, it searches for the pair
// first.
func (s *session) open(spec driver.LinkSpec, pair *pluginv1.Pair) {
	e := event{Event: driver.Event{Link: spec.Key}}
	conn, err := s.connect(spec, pair, &e)
	if err != nil {
		e.Kind, e.err, e.Problem = driver.LinkDown, err, codeOf(err)
		s.tell(s.life, e)
		return
	}
	l := &link{conn: conn, writes: make(chan driver.Write, 1)}
	e.Kind, e.MTU, e.opened = driver.LinkUp, conn.MTU(), l
	life, end := context.WithCancel(s.life)
	l.end = end
	s.workers.Go(func() { s.write(life, spec.Key, l) })
	s.tell(s.life, e)
}

func (s *session) connect(spec driver.LinkSpec, pair *pluginv1.Pair, e *event) (conn, error) {
	if s.page != nil {
		return s.openOnPage(spec, pair, e)
	}
	ctx, cancel := context.WithTimeout(s.life, openTime+scanTime)
	defer cancel()
	radio, err := s.adapter.openRadio(ctx)
	if err != nil {
		return nil, err
	}
	address := addressOf(pair, spec.Key)
	if address == "" {
		p, err := find(ctx, radio, s.kind.DeviceModel, pair, s.adapter.scanTime)
		if err != nil {
			s.adapter.dropRadio(radio, err)
			return nil, err
		}
		pair = pairOf(p)
		e.found, e.rssi = pair, map[string]int{}
		for key, one := range p.links {
			e.rssi[key] = one.RSSI
		}
		address = addressOf(pair, spec.Key)
	}
	c := claim{session: s, pair: pair.GetName(), link: spec.Key, address: address}
	if holder := s.adapter.claim(ctx, c); holder != "" {
		return nil, heldBy(holder)
	}
	conn, err := radio.Connect(ctx, targetOf(address, spec))
	if err != nil {
		s.adapter.dropRadio(radio, err)
		return nil, err
	}
	return conn, nil
}

// heldBy returns the error for glasses that another session is using.
func heldBy(session string) *problem.Error {
	return problem.New(problem.CodeBusyElsewhere, fmt.Sprintf("session %s uses these glasses", session),
		"Close that session first, or choose another pair.")
}

func addressOf(p *pluginv1.Pair, key string) string {
	for _, l := range p.GetLinks() {
		if l.GetKey() == key {
			return l.GetAddress()
		}
	}
	return ""
}

// pairOf returns the name and the addresses of a found pair.
func pairOf(p *foundPair) *pluginv1.Pair {
	pair := &pluginv1.Pair{Name: p.name}
	for _, m := range scanResponse(p).Links {
		pair.Links = append(pair.Links, &pluginv1.PairLink{Key: m.GetKey(), Address: p.links[m.GetKey()].Address})
	}
	return pair
}

// withFound returns the record of a found pair that the session stores. It keeps the user's answers about the panel
// if the pair is the same.
func withFound(old, found *pluginv1.Pair) *pluginv1.Pair {
	pair, _ := proto.Clone(old).(*pluginv1.Pair)
	if !strings.EqualFold(pair.Name, found.Name) {
		pair = &pluginv1.Pair{}
	}
	pair.Name, pair.Links = found.Name, found.Links
	return pair
}

// read passes the notifications of a link to the session, and finally the end of the link.
func (s *session) read(key string, l *link) {
	for data := range l.conn.Notifications() {
		s.tell(s.life, event{Event: driver.Event{Kind: driver.Notified, Link: key, Data: data}})
	}
	l.end()
	l.conn.Close()
	err := l.conn.Err()
	s.tell(s.life, event{Event: driver.Event{Kind: driver.LinkDown, Link: key, Problem: codeOf(err)}, err: err})
}

// write writes queued values in order until the link ends.
func (s *session) write(life context.Context, key string, l *link) {
	defer l.conn.Close() // makes read return
	for {
		select {
		case w := <-l.writes:
			e := event{Event: driver.Event{Kind: driver.Written, Link: key}}
			if err := l.conn.Write(life, w.Data, w.WithResponse); err != nil {
				e.Problem = problem.CodeTimeout
			}
			s.tell(life, e)
		case <-life.Done():
			return
		}
	}
}
