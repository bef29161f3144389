package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// ErrOtherKey is returned if the stored hashes were made with another key.
var ErrOtherKey = errors.New("this database was first used with another key for stored hashes: " +
	"set that key with SERVICE_BACKEND_HMAC_KEY or hmac_key_file; " +
	"if it was lost or leaked, run service-backend admin replace-key, which invalidates all links, sessions and keys")

// KeepKey stores the check value of the server's key on the first start. Later it returns ErrOtherKey for any other
// key.
func (d *DB) KeepKey(ctx context.Context, check string) error {
	_, err := d.Exec(ctx, "save key check",
		`INSERT INTO settings (name, value) VALUES ('key_check', $1) ON CONFLICT DO NOTHING`, check)
	if err != nil {
		return err
	}
	return d.CheckKey(ctx, check)
}

// CheckKey returns ErrOtherKey if the database was first used with another key. A new database accepts any key.
func (d *DB) CheckKey(ctx context.Context, check string) error {
	stored, err := QueryValue[string](ctx, d.reads, `SELECT value FROM settings WHERE name = 'key_check'`)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read key check: %w", err)
	case stored != check:
		return ErrOtherKey
	}
	return nil
}

// ReplaceKey makes the database accept a new key, and reports whether the key changed. If so, it also deletes the
// telemetry events, because their installs could no longer request their deletion.
func (d *DB) ReplaceKey(ctx context.Context, check string) (replaced bool, err error) {
	err = d.Write(ctx, func(tx *sql.Tx) error {
		replaced, err = Changed(ctx, tx, "replace key check", `INSERT INTO settings (name, value) VALUES ('key_check', $1)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE settings.value <> excluded.value`, check)
		if err != nil || !replaced {
			return err
		}
		return Exec(ctx, tx, "delete telemetry events", "DELETE FROM telemetry_events")
	})
	return replaced && err == nil, err
}
