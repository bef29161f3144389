package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
)

const (
	userKind   = "memory user" // of the hashes of users' secrets
	sweepEvery = time.Hour
	scrubEvery = time.Minute
	shortID    = 12 // hexadecimal digits of the hash that owners see
	// MaxListed is the maximum number of profiles that List returns.
	MaxListed = 100
	// MaxProfiles is the maximum number of users that a project remembers.
	MaxProfiles = 10_000
)

// Service stores profiles. Its Serve must run while it is used.
type Service struct {
	Store  *Store
	Hasher secret.Hasher
	// Sealer encrypts profiles. Without keys, nothing can be stored or read.
	Sealer *credentials.Service
	Now    func() time.Time
	Log    *slog.Logger

	unscrubbed atomic.Bool // erased text may still be in SQLite's journal
}

// Serve deletes profiles that have not been used for too long, and calls Scrub, until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	scrubbed := make(chan error, 1)
	go func() {
		scrubbed <- periodic.Run(ctx, scrubEvery, s.Log, "truncate the journal after an erasure", s.Scrub)
	}()
	err := periodic.Run(ctx, sweepEvery, s.Log, "sweep memories", s.Sweep)
	return errors.Join(err, <-scrubbed)
}

// Sweep deletes profiles that have not been used for too long, and the marks of erasures that no conversation can
// precede any more. It also removes what was erased from SQLite's journal.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.Store.SweepMemories(ctx, s.now()); err != nil {
		return fmt.Errorf("sweep memories: %w", err)
	}
	s.scrub(ctx)
	return nil
}

// Configured reports whether there is an encryption key.
func (s *Service) Configured() bool { return s.Sealer.Configured() }

func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// hash returns the hash of a user's secret in a project.
func (s *Service) hash(u User, project string) string {
	return s.Hasher.Hash(userKind, strings.Join([]string{u.Account, project, u.Secret}, "\x00"))
}

// rows returns the hashes under which a user's profile may be stored, by project: the user's own project first, then
// the projects that were merged into it.
func (s *Service) rows(ctx context.Context, u User) ([]rowID, error) {
	aliases, err := s.Store.aliases(ctx, u.Account, u.Project)
	if err != nil {
		return nil, fmt.Errorf("read merged projects: %w", err)
	}
	ids := []rowID{{u.Account, u.Project, s.hash(u, u.Project), u.Project}}
	for _, alias := range aliases {
		ids = append(ids, rowID{u.Account, u.Project, s.hash(u, alias), alias})
	}
	return ids, nil
}

// Profile returns what is remembered about a user. It does not count as a use. It returns ErrNotConfigured or a
// *credentials.MissingKeyError if the text cannot be decrypted.
func (s *Service) Profile(ctx context.Context, u User) (Profile, error) {
	p, _, err := s.read(ctx, u)
	return p, err
}

// read returns a user's profile and its row.
func (s *Service) read(ctx context.Context, u User) (Profile, stored, error) {
	p, row, err := s.find(ctx, u)
	if err == nil {
		err = s.open(&p, row)
	}
	if err != nil {
		return Profile{}, stored{}, err
	}
	return p, row, nil
}

// find is like read, but does not decrypt the text.
func (s *Service) find(ctx context.Context, u User) (Profile, stored, error) {
	if !s.Configured() {
		return Profile{}, stored{}, ErrNotConfigured
	}
	ids, err := s.rows(ctx, u)
	if err != nil {
		return Profile{}, stored{}, err
	}
	ofAll, err := s.Store.erasures(ctx, u.Account, u.Project)
	if err != nil {
		return Profile{}, stored{}, fmt.Errorf("read memory: %w", err)
	}
	for _, id := range ids {
		row, ok, err := s.Store.memory(ctx, id)
		if err != nil {
			return Profile{}, stored{}, fmt.Errorf("read memory: %w", err)
		}
		if ok {
			return Profile{generation: row.generation, ofAll: ofAll, hash: row.hash, boundTo: row.boundTo,
				was: row.sealed.Text, exists: true}, row, nil
		}
	}
	return Profile{hash: ids[0].hash, boundTo: ids[0].boundTo, ofAll: ofAll}, stored{}, nil
}

// open decrypts the text of a row into p. An expired text is as good as deleted.
func (s *Service) open(p *Profile, row stored) error {
	if row.sealed.Text == "" || !row.expiresAt.After(s.now()) {
		return nil
	}
	text, err := s.Sealer.Unseal(credentials.KindMemory, row.account, row.boundTo, row.hash, row.sealed)
	if err != nil {
		return fmt.Errorf("decrypt memory: %w", err)
	}
	p.Text, p.UpdatedAt, p.ExpiresAt = text, row.updatedAt, row.expiresAt
	return nil
}

// Use is like Profile for a call that remembers, and counts as a use of the profile.
func (s *Service) Use(ctx context.Context, u User) (Profile, error) {
	p, row, err := s.read(ctx, u)
	now := s.now()
	if err != nil || p.Text == "" || row.usedAt.Add(touchTime).After(now) {
		return p, err
	}
	if err := s.Store.touch(ctx, row.rowID, now); err != nil {
		return Profile{}, fmt.Errorf("note use of memory: %w", err)
	}
	return p, nil
}

// Put replaces what is remembered about a user, and returns it. It does not decrypt what was remembered before, whose
// key may be missing. An empty text is erased. It returns ErrNotConfigured, an *InvalidError or db.ErrNoProject on
// failure.
func (s *Service) Put(ctx context.Context, u User, text string) (Profile, error) {
	if err := CheckText(text); err != nil {
		return Profile{}, err
	}
	if text == "" {
		if !s.Configured() {
			return Profile{}, ErrNotConfigured
		}
		if err := s.Erase(ctx, u); err != nil {
			return Profile{}, err
		}
		return s.Profile(ctx, u)
	}
	for {
		p, _, err := s.find(ctx, u)
		if err != nil {
			return Profile{}, err
		}
		if saved, err := s.Save(ctx, u, p, text); err != nil {
			return Profile{}, err
		} else if saved {
			return s.Profile(ctx, u)
		}
	}
}

// Save replaces the text of a profile, unless the text has changed or was erased since the profile was read; it reports
// whether it has saved the text. An empty text removes the profile. It returns the errors of Put.
func (s *Service) Save(ctx context.Context, u User, p Profile, text string) (bool, error) {
	if err := CheckText(text); err != nil {
		return false, err
	}
	var sealed credentials.Sealed
	if text != "" {
		var err error
		if sealed, err = s.Sealer.Seal(credentials.KindMemory, u.Account, p.boundTo, p.hash, text); err != nil {
			return false, fmt.Errorf("encrypt memory: %w", err)
		}
	}
	row := stored{rowID: rowID{u.Account, u.Project, p.hash, p.boundTo}, sealed: sealed, generation: p.generation,
		updatedAt: s.now()}
	saved, err := s.Store.save(ctx, row, p)
	if err != nil {
		return false, fmt.Errorf("save memory: %w", err)
	}
	if saved && p.was != "" {
		s.unscrubbed.Store(true)
	}
	return saved, nil
}

// Erase deletes what is remembered about a user. No conversation that began before is remembered. It needs no
// encryption key, and also succeeds if nothing is stored.
func (s *Service) Erase(ctx context.Context, u User) error {
	ids, err := s.rows(ctx, u)
	if err == nil {
		err = s.Store.erase(ctx, ids, s.now())
	}
	if err != nil {
		return fmt.Errorf("erase memory: %w", err)
	}
	s.unscrubbed.Store(true)
	return nil
}

// scrub removes erased text, which is still encrypted, from SQLite's journal. If it fails, the next Scrub tries again.
func (s *Service) scrub(ctx context.Context) {
	s.unscrubbed.Store(true)
	if err := s.Scrub(ctx); err != nil && s.Log != nil {
		s.Log.WarnContext(ctx, "failed to truncate the journal after an erasure", "err", err)
	}
}

// Scrub removes erased text from SQLite's journal if that was impossible before, or if Erase or Save has left it to
// Scrub, because apps may erase often, and other writes have to wait meanwhile. During a long read, Scrub leaves it to
// the next Scrub. It returns an error of the database on failure; the next Scrub then tries again.
func (s *Service) Scrub(ctx context.Context) error {
	if !s.unscrubbed.Swap(false) {
		return nil
	}
	err := s.Store.TruncateJournal(context.WithoutCancel(ctx))
	if err == nil {
		return nil
	}
	s.unscrubbed.Store(true)
	if errors.Is(err, db.ErrJournalBusy) {
		return nil
	}
	return fmt.Errorf("truncate the journal: %w", err)
}

// Summary describes the profiles of a project without their texts. It needs no encryption key.
func (s *Service) Summary(ctx context.Context, account, project string) (Summary, error) {
	sum, err := s.Store.summary(ctx, account, project, s.now())
	if err != nil {
		return Summary{}, fmt.Errorf("count memories: %w", err)
	}
	return sum, nil
}

// List describes the profiles of a project that were used last, at most MaxListed.
func (s *Service) List(ctx context.Context, account, project string) ([]Entry, error) {
	all, err := s.Store.list(ctx, account, project, s.now())
	if err != nil {
		return nil, fmt.Errorf("list memories: %w", err)
	}
	return all, nil
}

// EraseEntry deletes the profile with an ID of List. It returns ErrNotFound if there is none.
func (s *Service) EraseEntry(ctx context.Context, account, project, id string, by audit.Actor) error {
	if len(id) != shortID || strings.Trim(id, "0123456789abcdef") != "" {
		return ErrNotFound
	}
	e := audit.New(s.now(), account, by, "memory.erased", project, "memory of user "+id+" erased")
	if err := s.Store.eraseEntries(ctx, id, e); err != nil {
		return fmt.Errorf("erase memory: %w", err)
	}
	s.scrub(ctx)
	return nil
}

// EraseAll deletes all profiles of a project.
func (s *Service) EraseAll(ctx context.Context, account, project string, by audit.Actor) error {
	e := audit.New(s.now(), account, by, "memory.erased", project, "memory of all users erased")
	if err := s.Store.eraseEntries(ctx, "", e); err != nil {
		return fmt.Errorf("erase memories: %w", err)
	}
	s.scrub(ctx)
	return nil
}

// SetDays sets how many days after its last use a profile of a project is deleted. It returns an *InvalidError unless
// days is 1 to MaxDays, or projects.ErrNotFound.
func (s *Service) SetDays(ctx context.Context, account, project string, days int, by audit.Actor) error {
	if days < 1 || days > MaxDays {
		return &InvalidError{fmt.Sprintf("the days are %d: they must be 1 to %d", days, MaxDays)}
	}
	e := audit.New(s.now(), account, by, "memory.days_changed", project,
		fmt.Sprintf("memories are deleted %d days after their last use", days))
	if err := s.Store.setDays(ctx, days, e); err != nil {
		return fmt.Errorf("set days of memories: %w", err)
	}
	return nil
}
