package telemetry

import (
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/identity"
)

// notice records the audiences to which the first-run notice is being sent.
type notice struct {
	sync.Mutex
	taken map[identity.Audience]bool
}

// Take claims the first-run notice for the response to an agent's tool call. Only one of several concurrent calls gets
// it. ok is false if agents got the notice before or the user has decided. It is also false if this shell's switches
// stop uploads, because the user may not read this shell's responses. The caller must call done exactly once; written
// reports whether the response was written to the client. If it was not, the next call gets the notice.
func (r *Recorder) Take(who caller.Caller) (text string, done func(written bool), ok bool) {
	return r.take(who, identity.Agents)
}

// TakeForTerminal is like Take, but for a command on a terminal. The notice for agents stays pending.
func (r *Recorder) TakeForTerminal(who caller.Caller) (text string, done func(written bool), ok bool) {
	return r.take(who, identity.Terminal)
}

func (r *Recorder) take(who caller.Caller, to identity.Audience) (text string, done func(written bool), ok bool) {
	if disabledBy(who) != "" || !r.o.Memory.NoticeShownAt(to).IsZero() {
		return "", nil, false
	}
	if state, err := r.o.Consents.Get(); err != nil || state != consent.Unset {
		return "", nil, false
	}
	r.notice.Lock()
	defer r.notice.Unlock()
	if r.notice.taken[to] || !r.o.Memory.NoticeShownAt(to).IsZero() {
		return "", nil, false
	}
	r.notice.taken[to] = true
	return r.noticeText(), func(written bool) { r.settle(to, written) }, true
}

// settle ends a claim. If the notice was shown but this cannot be recorded, this process neither shows it again nor
// uploads events.
func (r *Recorder) settle(to identity.Audience, written bool) {
	r.notice.Lock()
	defer r.notice.Unlock()
	if !written {
		delete(r.notice.taken, to)
		return
	}
	if err := r.o.Memory.SetNoticeShownAt(to, r.o.Now()); err != nil {
		r.o.Log.Warn("failed to save that the telemetry notice was shown", "err", err)
	}
}

// toldAt returns when the notice was first shown to the user, through an agent or on a terminal, or the zero time.
func (r *Recorder) toldAt() time.Time {
	first := r.o.Memory.NoticeShownAt(identity.Agents)
	if at := r.o.Memory.NoticeShownAt(identity.Terminal); first.IsZero() || !at.IsZero() && at.Before(first) {
		return at
	}
	return first
}

// noticeText returns the notice: what is collected, that it is enabled, and how to disable it.
func (r *Recorder) noticeText() string {
	where := "uploaded to its backend"
	if own, err := r.o.Backend(caller.Caller{}); err != nil || own.Kind == config.KindEmbedded {
		where = "uploaded once a backend on another machine is set up (none is now)"
	}
	return "Notice for the user (shown once): usage telemetry is on: anonymous events (tool name, duration, outcome, " +
		"versions, operating system, client name; never code, prompts or personal data) are written to a log on this " +
		"machine and " + where +
		". To stop the upload: run `service-mcp decline-privacy`, or set SERVICE_TELEMETRY=0 or DO_NOT_TRACK=1. " +
		"`servicectl telemetry status` shows it all."
}
