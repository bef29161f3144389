package scaffold

import (
	"fmt"
	"testing"

	"github.com/service-dev/service/glasses"
)

// startProbe attaches a probe that waits for events.
func startProbe(t *testing.T, start func(env ...string) *app) (*app, *peer) {
	t.Helper()
	return startProbeWith(t, start, nil)
}

func startProbeWith(t *testing.T, start func(env ...string) *app, gateway *glasses.Gateway) (*app, *peer) {
	t.Helper()
	s := newService(t)
	s.gateway = gateway
	app := start("SERVICE_GLASSES_URL=" + s.url)
	p := s.accept(7)
	p.ok(p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"ready"}}`))
	return app, p
}

func (p *peer) expectSleep(ms int) glasses.Frame {
	p.t.Helper()
	return p.expect(glasses.TypeClockSleep, fmt.Sprintf(`{"ms":%d}`, ms))
}

// okAt answers a command with a time on the session's clock.
func (p *peer) okAt(f glasses.Frame, at int64) {
	p.t.Helper()
	p.sendAt(glasses.TypeResult, f.ID, at, glasses.Result{OK: true})
}

func (p *peer) leave(a *app) {
	p.t.Helper()
	p.close(4410, "the session is closed")
	a.says("closed")
}

func TestTimers_RunBesideInput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbe(t, start)
		p.input("g-1", "timers")
		every, once, cancelled := p.expectSleep(1000), p.expectSleep(300), p.expectSleep(50)
		cancel := p.expect(glasses.TypeClockCancel, `{"id":"`+cancelled.ID+`"}`)
		p.ok(cancelled)
		p.ok(cancel)
		p.barrier("b-1") // the cancelled timer had no effect

		p.input("g-2", "two")
		p.ok(p.expect(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"two"}}`))
		p.okAt(once, 300)
		p.expect("com.example.once", `{}`)

		p.okAt(every, 1000)
		every = p.expectSleep(1000)
		p.expect("com.example.turn", `{"turn":1}`)
		p.okAt(every, 2030) // late: the next turn is still at 3000
		every = p.expectSleep(970)
		p.expect("com.example.turn", `{"turn":2}`)
		p.ok(p.expect(glasses.TypeClockCancel, `{"id":"`+every.ID+`"}`))
		p.ok(every)
		p.barrier("b-2")

		p.input("g-3", "never")
		p.expect("com.example.error", "")
		p.leave(app)
	})
}

// Handlers and timers run, and barriers are answered, while the app waits for a photo and sleeps.
func TestTimers_AndHandlersRunDuringCommands(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbe(t, start)
		p.input("g-1", "timers")
		_, once := p.expectSleep(1000), p.expectSleep(300)
		p.expectSleep(50)
		p.ok(p.expect(glasses.TypeClockCancel, ""))

		p.input("g-2", "photo")
		photo := p.expect(glasses.TypeCameraPhoto, "")
		p.send(glasses.TypeBattery, "g-3", glasses.Battery{Level: 40})
		p.expect("com.example.battery", `{"level":40}`)
		p.barrier("b-1")
		p.binary(glasses.TypeMedia, photo.ID, glasses.Media{}, []byte{0xff})
		p.send(glasses.TypeResult, photo.ID, glasses.Result{OK: true, Media: &glasses.Media{MIME: "image/jpeg", Bytes: 1}})
		p.expect("com.example.photo", "")

		p.input("g-4", "sleep")
		sleep := p.expectSleep(2000)
		p.send(glasses.TypeBattery, "g-5", glasses.Battery{Level: 39})
		p.expect("com.example.battery", `{"level":39}`)
		p.ok(once)
		p.expect("com.example.once", `{}`)
		p.ok(sleep)
		p.ok(p.expect(glasses.TypeSpeechSay, ""))
		p.leave(app)
	})
}

// A timer skips a turn while the task of the previous turn is still running.
func TestTimers_DoNotOverlap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbe(t, start)
		p.input("g-1", "busy")
		p.okAt(p.expectSleep(100), 100)
		every, task := p.expectSleep(100), p.expectSleep(1000)
		p.okAt(every, 200)
		every = p.expectSleep(100)
		p.barrier("b-1") // no second task was started
		p.okAt(task, 1100)
		p.expect("com.example.turn", `{}`)
		p.okAt(every, 1101) // calls were missed, so the next one is a whole period later
		p.expectSleep(100)
		p.expectSleep(1000)
		p.leave(app)
	})
}

func TestTimers_NextWithTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbe(t, start)
		p.input("g-1", "wait")
		p.ok(p.expectSleep(400))
		p.expect("com.example.next", `{"target":"none"}`)

		p.input("g-2", "wait")
		sleep := p.expectSleep(400)
		p.input("g-3", "hello")
		p.ok(p.expect(glasses.TypeClockCancel, `{"id":"`+sleep.ID+`"}`))
		p.expect("com.example.next", `{"target":"hello"}`)
		p.ok(sleep)

		p.input("g-4", "wait")
		p.expectSleep(400)
		p.barrier("b-1")
		p.leave(app) // the end of the session is not a timeout
	})
}

func (p *peer) notConnected(f glasses.Frame) {
	p.t.Helper()
	p.send(glasses.TypeResult, f.ID, glasses.Result{Error: &glasses.Error{Code: glasses.CodeNotConnected,
		Message: "no glasses are attached"}})
}

// The glasses were detached and attached again while the app was away. The welcome reports that they are attached, the
// replay then reports that they were not, and no link event follows.
func TestTimers_EndureReplayedRefusal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		p.ok(p.expect(glasses.TypeDisplayShow, ""))
		p.input("g-1", "long")
		sleep := p.expectSleep(600_000)
		p.cut()
		p = s.accept(20)
		p.notConnected(sleep)
		p.ok(p.expectSleep(600_000))
		p.ok(p.expectSleep(500))
		p.expect("com.example.once", `{}`)
		p.leave(app)
	})
}

// A timer may last longer than the longest sleep, and continues while no glasses are attached.
func TestTimers_Endure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbe(t, start)
		p.input("g-1", "long")
		p.ok(p.expectSleep(600_000))
		rest := p.expectSleep(500)
		p.send(glasses.TypeLink, "g-2", glasses.StateWord{State: glasses.LinkDisconnected})
		p.notConnected(rest)
		p.barrier("b-1") // the timer waits for glasses
		p.send(glasses.TypeLink, "g-3", glasses.StateWord{State: glasses.LinkConnected})
		p.ok(p.expectSleep(500))
		p.expect("com.example.once", `{}`)
		p.leave(app)
	})
}
