package account

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// TakeGuess uses up one of the key's limit guesses; one guess is restored each interval. It returns 0, or the time
// until a guess is restored if none is left. It uses a single conditional statement, so that two processes cannot take
// the same guess.
func (s *Store) TakeGuess(
	ctx context.Context, key string, now time.Time, interval time.Duration, limit int,
) (wait time.Duration, err error) {
	latest := now.Add(time.Duration(limit-1) * interval)
	err = s.Write(ctx, func(tx *sql.Tx) error {
		wait = 0
		taken, err := db.Changed(ctx, tx, "take guess", `INSERT INTO password_guesses (key, spent_until) VALUES ($1, $2)
			ON CONFLICT (key) DO UPDATE SET spent_until =
				CASE WHEN password_guesses.spent_until > $3 THEN password_guesses.spent_until + $4 ELSE $2 END
			WHERE password_guesses.spent_until <= $5`,
			key, db.ToMS(now.Add(interval)), db.ToMS(now), interval.Milliseconds(), db.ToMS(latest))
		if err != nil || taken {
			return err
		}
		until, err := db.QueryValue[int64](ctx, tx, "SELECT spent_until FROM password_guesses WHERE key = $1", key)
		if errors.Is(err, sql.ErrNoRows) { // a sweep has deleted the row in the meantime
			until = db.ToMS(latest)
		} else if err != nil {
			return err
		}
		wait = max(db.FromMS(until).Sub(latest), time.Millisecond)
		return nil
	})
	return wait, err
}

// ReturnGuess restores a guess that was correct. A full allowance has no row.
func (s *Store) ReturnGuess(ctx context.Context, key string, now time.Time, interval time.Duration) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.ExecAll(ctx, tx, "return guess",
			db.Stmt("UPDATE password_guesses SET spent_until = spent_until - $1 WHERE key = $2", interval.Milliseconds(), key),
			db.Stmt("DELETE FROM password_guesses WHERE key = $1 AND spent_until <= $2", key, db.ToMS(now)))
	})
}

// SweepGuesses deletes the allowances whose guesses are all restored.
func (s *Store) SweepGuesses(ctx context.Context, now time.Time) error {
	_, err := s.Exec(ctx, "delete full allowances", "DELETE FROM password_guesses WHERE spent_until <= $1", db.ToMS(now))
	return err
}
