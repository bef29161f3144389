package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/service-dev/service/proto/glasses"
)

// open is a store, a log and a relay where every session is open and no event ever occurs.
type open struct {
	Store
	Log
	watching chan struct{} // receives a value from each waiting call
}

func (open) Session(_ context.Context, id string) (Session, error) {
	return Session{ID: id, Owner: Owner{AccountID: id}, ExpiresAt: time.Now().Add(time.Hour)}, nil
}

func (open) SessionEvents(context.Context, string, int64, int) ([]glasses.Event, error) {
	return nil, nil
}

func (open) SweepLogs(context.Context, time.Time, time.Time, Quota) error { return nil }

func (open) Attached(string) Live                     { return Live{} }
func (open) WithApps(string) []string                 { return nil }
func (open) Closed(string)                            {}
func (open) Switched(context.Context, string, string) {}
func (o open) Watch(string) (<-chan struct{}, func(), error) {
	o.watching <- struct{}{}
	return nil, func() {}, nil
}
func (open) Control(context.Context, string, string, json.RawMessage, []byte) (json.RawMessage, error) {
	return nil, nil
}

func TestWaits_BoundedPerAccount(t *testing.T) {
	all := open{watching: make(chan struct{}, 2*maxAccountWaits)}
	s := &Service{Store: all, Log: all, Live: all, Now: time.Now}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, maxAccountWaits)
	for range maxAccountWaits {
		go func() {
			_, err := s.Events(ctx, "ada", "ada", 0, 0, MaxWait)
			done <- err
		}()
	}
	for range maxAccountWaits {
		<-all.watching
	}
	if _, err := s.Events(ctx, "ada", "ada", 0, 0, time.Second); !errors.Is(err, ErrTooManyWaiters) {
		t.Errorf("one call too many for the account: got %v, want ErrTooManyWaiters", err)
	}
	if _, err := s.Events(ctx, "ada", "ada", 0, 0, 0); err != nil {
		t.Errorf("a call that does not wait was refused: %v", err)
	}
	if _, err := s.Events(ctx, "bob", "bob", 0, 0, time.Millisecond); err != nil {
		t.Errorf("a call of another account was refused: %v", err)
	}
	cancel()
	for range maxAccountWaits {
		<-done
	}
	if len(s.waits.of) != 0 {
		t.Errorf("got waiting calls %v after all have ended, want none", s.waits.of)
	}
}
