package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// TakeGuess uses up one of the key's limit guesses; one guess is restored each interval. It returns 0, or the time
// until a guess is restored if none is left. It uses a single conditional statement, so that two processes cannot take
// the same guess.
func (s *Store) TakeGuess(
	ctx context.Context, key string, now time.Time, interval time.Duration, limit int,
) (wait time.Duration, err error) {
	latest := now.Add(time.Duration(limit-1) * interval)
	err = s.write(ctx, func(tx *sql.Tx) error {
		wait = 0
		taken, err := changed(ctx, tx, "take guess", `INSERT INTO password_guesses (key, spent_until) VALUES ($1, $2)
			ON CONFLICT (key) DO UPDATE SET spent_until =
				CASE WHEN password_guesses.spent_until > $3 THEN password_guesses.spent_until + $4 ELSE $2 END
			WHERE password_guesses.spent_until <= $5`,
			key, toMS(now.Add(interval)), toMS(now), interval.Milliseconds(), toMS(latest))
		if err != nil || taken {
			return err
		}
		until, err := queryValue[int64](ctx, tx, "SELECT spent_until FROM password_guesses WHERE key = $1", key)
		if errors.Is(err, sql.ErrNoRows) { // a sweep has just deleted the row
			until = toMS(latest)
		} else if err != nil {
			return err
		}
		wait = max(fromMS(until).Sub(latest), time.Millisecond)
		return nil
	})
	return wait, err
}

// ReturnGuess restores a guess that turned out to be correct. A full allowance has no row.
func (s *Store) ReturnGuess(ctx context.Context, key string, now time.Time, interval time.Duration) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		return execAll(ctx, tx, "return guess",
			stmt("UPDATE password_guesses SET spent_until = spent_until - $1 WHERE key = $2", interval.Milliseconds(), key),
			stmt("DELETE FROM password_guesses WHERE key = $1 AND spent_until <= $2", key, toMS(now)))
	})
}

// SweepGuesses deletes the rows of allowances that are full again.
func (s *Store) SweepGuesses(ctx context.Context, now time.Time) error {
	_, err := s.exec(ctx, "delete full allowances", "DELETE FROM password_guesses WHERE spent_until <= $1", toMS(now))
	return err
}
