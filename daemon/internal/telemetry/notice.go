package telemetry

import (
	"sync"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
)

// notice records whether a response with the first-run notice is being sent.
type notice struct {
	sync.Mutex
	taken bool
}

// Take claims the first-run notice for the response to a tool call. Only one of several concurrent calls gets it. ok
// is false if the notice was shown before, if the person has decided, or if this shell's switches stop uploads (the
// reader of its responses need not be the person). Call done once and report whether the response was written to the
// client; if it was not, the next call gets the notice.
func (r *Recorder) Take(who caller.Caller) (text string, done func(written bool), ok bool) {
	if disabledBy(who) != "" || !r.o.Memory.NoticeShownAt().IsZero() {
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
	return r.noticeText(), r.settle, true
}

// settle ends a claim. If the notice was shown but that cannot be recorded, this process does not show it again and
// uploads nothing.
func (r *Recorder) settle(written bool) {
	r.notice.Lock()
	defer r.notice.Unlock()
	if !written {
		r.notice.taken = false
		return
	}
	if err := r.o.Memory.SetNoticeShownAt(r.o.Now()); err != nil {
		r.o.Log.Warn("failed to save that the telemetry notice was shown", "err", err)
	}
}

// noticeText returns the notice: what is collected, that it is on, and how to turn it off.
func (r *Recorder) noticeText() string {
	where := "uploaded to its backend"
	if own, err := r.o.Backend(caller.Caller{}); err != nil || own.Kind == config.KindEmbedded {
		where = "uploaded once a backend on another machine is set up (none is now)"
	}
	return "Notice for the person (shown once): usage telemetry is on: anonymous events (tool name, duration, outcome, " +
		"versions, operating system, client name; never code, prompts or personal data) are written to a log on this " +
		"machine and " + where +
		". To stop the upload: run `service-mcp decline-privacy`, or set SERVICE_TELEMETRY=0 or DO_NOT_TRACK=1. " +
		"`servicectl telemetry status` shows it all."
}
