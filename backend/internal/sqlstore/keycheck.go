package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrOtherKey says that the stored hashes were made with another key.
var ErrOtherKey = errors.New("the key for stored hashes is not the one that this database was first served with: " +
	"set that one with SERVICE_BACKEND_HMAC_KEY or hmac_key_file; " +
	"if it is lost or must change, service-backend admin replace-key gives up every link, session and key made with it")

// KeepKey stores what tells the server's key, unless that is done, and answers ErrOtherKey for any other.
func (s *Store) KeepKey(ctx context.Context, check string) error {
	if _, err := s.exec(ctx, `INSERT INTO settings (name, value) VALUES ('key_check', $1) ON CONFLICT DO NOTHING`, check); err != nil {
		return fmt.Errorf("keeping the check of the key: %w", err)
	}
	return s.CheckKey(ctx, check)
}

// CheckKey answers ErrOtherKey when the database was served with another key, and nil when it never was.
func (s *Store) CheckKey(ctx context.Context, check string) error {
	var kept string
	err := s.reads.QueryRowContext(ctx, `SELECT value FROM settings WHERE name = 'key_check'`).Scan(&kept)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("checking the key for stored hashes: %w", err)
	case kept != check:
		return ErrOtherKey
	}
	return nil
}

// ReplaceKey has the database served with another key from now on. It tells whether that is another one: then events of
// use go too, since their installs could not have them erased any more.
func (s *Store) ReplaceKey(ctx context.Context, check string) (replaced bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		replaced, err = changed(ctx, tx, `INSERT INTO settings (name, value) VALUES ('key_check', $1)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value <> excluded.value`, check)
		if err != nil || !replaced {
			return err
		}
		return run(ctx, tx, "DELETE FROM telemetry_events")
	})
	if err != nil {
		return false, fmt.Errorf("keeping the check of the key: %w", err)
	}
	return replaced, nil
}
