package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// TakeGuess spends one guess of the key's allowance of most guesses, of which one comes back each every, and returns 0;
// or, when none is left, how long it takes for the next one to come back. One conditional statement decides, so that
// guesses in several processes never share what is left.
func (s *Store) TakeGuess(ctx context.Context, key string, now time.Time, every time.Duration, most int) (time.Duration, error) {
	latest := now.Add(time.Duration(most-1) * every)
	var wait time.Duration
	err := s.write(ctx, func(tx *sql.Tx) error {
		wait = 0
		taken, err := changed(ctx, tx, `INSERT INTO password_guesses (key, spent_until) VALUES ($1, $2)
			ON CONFLICT (key) DO UPDATE SET spent_until =
				CASE WHEN password_guesses.spent_until > $3 THEN password_guesses.spent_until + $4 ELSE $2 END
			WHERE password_guesses.spent_until <= $5`,
			key, toMS(now.Add(every)), toMS(now), every.Milliseconds(), toMS(latest))
		if err != nil || taken {
			return err
		}
		var until int64
		err = tx.QueryRowContext(ctx, "SELECT spent_until FROM password_guesses WHERE key = $1", key).Scan(&until)
		if errors.Is(err, sql.ErrNoRows) { // swept just now
			until = toMS(latest)
		} else if err != nil {
			return err
		}
		wait = max(fromMS(until).Sub(latest), time.Millisecond)
		return nil
	})
	return wait, err
}

// ReturnGuess gives a guess back that was right after all. What is whole again leaves no row.
func (s *Store) ReturnGuess(ctx context.Context, key string, now time.Time, every time.Duration) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		return inTurn(
			func() error {
				return run(ctx, tx, "UPDATE password_guesses SET spent_until = spent_until - $1 WHERE key = $2", every.Milliseconds(), key)
			},
			func() error {
				return run(ctx, tx, "DELETE FROM password_guesses WHERE key = $1 AND spent_until <= $2", key, toMS(now))
			})
	})
}

// SweepGuesses drops allowances that are whole again.
func (s *Store) SweepGuesses(ctx context.Context, now time.Time) error {
	_, err := s.exec(ctx, "DELETE FROM password_guesses WHERE spent_until <= $1", toMS(now))
	return err
}
