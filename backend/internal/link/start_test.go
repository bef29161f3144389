package link

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
)

// takenStore reports the first codes that it receives as taken.
type takenStore struct {
	CodeStore
	taken int
	err   error
	seen  []Code
}

func (s *takenStore) InsertCode(_ context.Context, c Code, _ audit.Trace) error {
	s.seen = append(s.seen, c)
	if len(s.seen) <= s.taken {
		return s.err
	}
	return nil
}

func startOn(store *takenStore) (Issued, error) {
	s := NewService(store, nil, secret.NewHasher(make([]byte, 32)), Settings{CodeTTL: 10 * time.Minute,
		PollInterval: 5 * time.Second},
		slog.New(slog.DiscardHandler), nil)
	return s.Start(context.Background(), Requester{Host: "maple"})
}

// If a drawn code is taken, Start draws another.
func TestStart_DrawsTakenCodeAgain(t *testing.T) {
	for taken := range 5 {
		store := &takenStore{taken: taken, err: ErrDuplicate}
		issued, err := startOn(store)
		if err != nil || len(store.seen) != taken+1 {
			t.Fatalf("%d codes taken: got %d draws, error %v, want one more draw than taken codes", taken, len(store.seen), err)
		}
		hashes := map[string]bool{}
		for _, c := range store.seen {
			hashes[c.UserHash] = true
			if strings.Contains(c.UserHash+c.DeviceHash, issued.UserCode) || c.DeviceHash == issued.DeviceCode {
				t.Error("a code was stored in clear text")
			}
		}
		last := store.seen[taken]
		if len(hashes) != taken+1 || last.State != Pending || last.Requester.Host != "maple" ||
			last.ExpiresAt.Sub(last.CreatedAt) != 10*time.Minute {
			t.Errorf("%d codes taken: got %d different draws and stored %+v, want every draw to differ",
				taken, len(hashes), last)
		}
	}
}

func TestStart_GivesUpAfterCollisions(t *testing.T) {
	store := &takenStore{taken: 1000, err: ErrDuplicate}
	if issued, err := startOn(store); err == nil || issued.DeviceCode != "" || len(store.seen) != 5 {
		t.Errorf("every code taken: got error %v after %d draws, want an error after 5", err, len(store.seen))
	}
	broken := errors.New("disk full")
	store = &takenStore{taken: 1000, err: broken}
	if _, err := startOn(store); !errors.Is(err, broken) || len(store.seen) != 1 {
		t.Errorf("broken store: got error %v after %d draws, want its error after 1", err, len(store.seen))
	}
}

// The memory for recent polls is bounded for every pattern of polls.
func TestPace_MemoryIsBounded(t *testing.T) {
	s := NewService(nil, nil, secret.NewHasher(make([]byte, 32)), Settings{}, slog.New(slog.DiscardHandler), nil)
	for i := range 2*maxPaced + 10 {
		if _, err := s.pace(context.Background(), strconv.Itoa(i), 5*time.Second, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.polls) > maxPaced {
		t.Errorf("%d polls are remembered, want at most maxPaced", len(s.polls))
	}
}
