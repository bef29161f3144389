package tools

import (
	"cmp"
	"context"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
)

func (w *world) Target(context.Context, caller.Caller) (backend.Target, account.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := backend.Target{BaseURL: "embedded:x", InstallID: "inst_1"}
	if w.link.Linked() {
		t = backend.Target{BaseURL: "embedded:x", Bearer: w.link.AuthToken.Reveal()}
	}
	return t, w.link, nil
}

func (w *world) InstallID() string                 { return "inst_1" }
func (w *world) Link(context.Context) account.Link { return w.link }
func (w *world) BackendURL(context.Context) string { return "embedded:x" }

func (w *world) Ask(_ context.Context, _ backend.Target, gated link.GatedCall,
	_ func(context.Context) error) (link.Code, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gated = &gated
	return link.Code{DeviceCode: backend.DeviceCode{
		DeviceCode: testDevice, UserCode: testUser, VerificationURL: cmp.Or(w.askAt, testURL),
		ExpiresIn: 10 * time.Minute, PollInterval: 5 * time.Second,
	}}, nil
}

func (w *world) OpenPage(_ string, again bool, open func(string) bool) bool {
	if w.shown && !again {
		return false
	}
	opened := open(cmp.Or(w.askAt, testURL))
	w.shown = w.shown || opened
	return opened
}

func (w *world) Complete(ctx context.Context, _ caller.Caller, _ string, wait link.Wait) (link.Outcome, error) {
	w.mu.Lock()
	w.wait = wait
	complete := w.complete
	w.mu.Unlock()
	if wait.OpenPage != nil {
		w.OpenPage("", false, func(page string) bool { return wait.OpenPage(ctx, page) })
	}
	if complete != nil {
		if err := complete(ctx, wait); err != nil {
			return link.Outcome{}, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.linked()
	return link.Outcome{
		AccountID: "acc", Tier: account.TierFree, LinkedAt: testTime, PollCount: 4,
		File: link.AuthFile{Path: "/state/auth.json", Written: true},
	}, nil
}

func (w *world) TakeGated(string) (link.GatedCall, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gated == nil {
		return link.GatedCall{}, false
	}
	gated := *w.gated
	w.gated = nil
	return gated, true
}

func (w *world) Revoked(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revoked = append(w.revoked, token)
	w.link.State = account.Revoked
}
