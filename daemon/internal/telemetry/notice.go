package telemetry

import (
	"sync"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
)

// notice is whether an answer carries the first-run notice just now.
type notice struct {
	sync.Mutex
	taken bool
}

// Take claims the first-run notice for the answer to a tool call; of many calls at once one gets it. ok is
// false when there is nothing to tell: it was told before, the person has decided, or this shell uploads nothing by
// its own switches, so that whoever reads its answers need not be the person. done must be called once, with whether
// the answer was written to the client; when it was not, the next call gets the notice.
func (r *Recorder) Take(who caller.Caller) (text string, done func(written bool), ok bool) {
	if off(who) != "" || !r.o.Memory.NoticeShownAt().IsZero() {
		return "", nil, false
	}
	if state, err := r.o.Consents.Get(); err != nil || state != consent.Unset {
		return "", nil, false
	}
	r.notice.Lock()
	defer r.notice.Unlock()
	if r.notice.taken || !r.o.Memory.NoticeShownAt().IsZero() {
		return "", nil, false
	}
	r.notice.taken = true
	return r.words(), r.settle, true
}

// settle ends a claim. A notice that was shown but cannot be remembered is not shown again by this process, and
// nothing is uploaded.
func (r *Recorder) settle(written bool) {
	r.notice.Lock()
	defer r.notice.Unlock()
	if !written {
		r.notice.taken = false
		return
	}
	if err := r.o.Memory.SetNoticeShownAt(r.o.Now()); err != nil {
		r.o.Log.Warn("remembering that the telemetry notice was shown", "err", err)
	}
}

// words are the notice: what is collected, that it is on, how to stop it.
func (r *Recorder) words() string {
	where := "uploaded to its backend"
	if own, err := r.o.Backend(caller.Caller{}); err != nil || own.Kind == config.KindEmbedded {
		where = "uploaded once a backend on another machine is set up (none is now)"
	}
	return "Notice for the person (shown once): usage telemetry is on: anonymous events (tool name, duration, outcome, " +
		"versions, operating system, client name; never code, prompts or personal data) are written to a log on this machine and " + where +
		". To stop the upload: run `service-mcp decline-privacy`, or set SERVICE_TELEMETRY=0 or DO_NOT_TRACK=1. " +
		"`servicectl telemetry status` shows it all."
}
