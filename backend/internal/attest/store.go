package attest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores settings, challenges, installs and hashes of tokens. Every method is atomic.
type Store struct{ *db.DB }

// atOnce is the maximum number of installs whose IDs are in one statement.
const atOnce = 500

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Settings returns a project's settings, which are empty unless they were set.
func (s *Store) Settings(ctx context.Context, account, project string) (Settings, error) {
	return db.One(ctx, s, nil, func(row db.Row) (v Settings, err error) {
		var apps, packages, certificates string
		err = row.Scan(&apps, &v.AppleDevelopment, &packages, &certificates, &v.TestKey, &v.Version)
		v.AppleApps, v.Packages = strings.Fields(apps), strings.Fields(packages)
		v.Certificates = strings.Fields(certificates)
		return v, err
	}, `SELECT apple_apps, apple_development <> 0, packages, certificates, test_key, version FROM attest_settings
		WHERE account_id = $1 AND app_id = $2`, account, project)
}

// SetSettings replaces version v.Version of the settings of the entry's project, and ends the tokens of installs. It
// returns ErrConflict or projects.ErrNotFound.
func (s *Store) SetSettings(ctx context.Context, v Settings, ended []removal, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := projects.Lock(ctx, tx, projects.ErrNotFound, e.AccountID, e.Project); err != nil {
			return err
		}
		err := db.MustChange(ctx, tx, ErrConflict, "set attestation settings", `INSERT INTO attest_settings
				(account_id, app_id, apple_apps, apple_development, packages, certificates, test_key, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8 + 1)
			ON CONFLICT (account_id, app_id) DO UPDATE SET apple_apps = excluded.apple_apps,
				apple_development = excluded.apple_development, packages = excluded.packages,
				certificates = excluded.certificates, test_key = excluded.test_key, version = excluded.version
			WHERE attest_settings.version = $8`, e.AccountID, e.Project, strings.Join(v.AppleApps, "\n"),
			db.BoolInt(v.AppleDevelopment), strings.Join(v.Packages, "\n"), strings.Join(v.Certificates, "\n"), v.TestKey,
			v.Version)
		if err != nil {
			return err
		}
		for _, one := range ended {
			if err := one.endTokens(ctx, tx, e.AccountID, e.Project); err != nil {
				return err
			}
		}
		return audit.Insert(ctx, tx, e)
	})
}

// removal selects the installs of a platform that attested for one of the apps, or all if apps is nil.
type removal struct {
	platform string
	apps     []string
}

// endTokens deletes the tokens of the installs, and their project keys, so that their running calls end. Revocations
// and the keys of Apple's installs remain.
func (r removal) endTokens(ctx context.Context, tx *sql.Tx, account, project string) error {
	which, args := ` WHERE account_id = $1 AND app_id = $2 AND platform = $3`, []any{account, project, r.platform}
	if r.apps != nil {
		which += ` AND app IN ` + db.Placeholders(len(r.apps), 4)
		args = append(args, db.Args(r.apps)...)
	}
	ids, err := db.All(ctx, tx, db.Value[string], `UPDATE attest_installs SET project_key = ''`+which+` RETURNING id`,
		args...)
	if err != nil {
		return fmt.Errorf("end tokens of installs: %w", err)
	}
	for part := range slices.Chunk(ids, atOnce) {
		err := db.Exec(ctx, tx, "end tokens of installs", `DELETE FROM attest_tokens WHERE install_id IN `+
			db.Placeholders(len(part), 1), db.Args(part)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// EndTokens ends the tokens of installs of a project. It counts as a change to the settings, so that attestations in
// progress are verified again.
func (s *Store) EndTokens(ctx context.Context, account, project string, which removal) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		err := db.Exec(ctx, tx, "count change of attestation settings", `UPDATE attest_settings SET version = version + 1
			WHERE account_id = $1 AND app_id = $2`, account, project)
		if err != nil {
			return err
		}
		return which.endTokens(ctx, tx, account, project)
	})
}

// AddChallenge stores the hash of a challenge and deletes the project's expired ones.
func (s *Store) AddChallenge(ctx context.Context, who projects.KeyOwner, hash string, now, expires time.Time) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.ExecAll(ctx, tx, "insert attestation challenge",
			db.Stmt(`DELETE FROM attest_challenges WHERE account_id = $1 AND app_id = $2 AND expires_at <= $3`,
				who.AccountID, who.Project, db.ToMS(now)),
			db.Stmt(`INSERT INTO attest_challenges (hash, account_id, app_id, expires_at) VALUES ($1, $2, $3, $4)`, hash,
				who.AccountID, who.Project, db.ToMS(expires)))
	})
}

// UseChallenge deletes a challenge of a project. It reports whether the challenge was valid.
func (s *Store) UseChallenge(
	ctx context.Context, who projects.KeyOwner, hash string, now time.Time,
) (ok bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		ok, err = db.Changed(ctx, tx, "use attestation challenge", `DELETE FROM attest_challenges
			WHERE hash = $1 AND account_id = $2 AND app_id = $3 AND expires_at > $4`, hash, who.AccountID, who.Project,
			db.ToMS(now))
		return err
	})
	return ok, err
}

// stored is an install and its new token.
type stored struct {
	who                                   projects.KeyOwner
	id, platform, keyHash, publicKey, app string
	environment                           string
	counter                               uint32
	revoked                               bool
	now, expires                          time.Time
	tokenHash                             string
	settings                              int64 // version of the settings that it was attested with
}

// insertInstall returns the statement for a new install, followed by what to do if it exists.
func insertInstall(ctx context.Context, tx *sql.Tx, i stored, conflict string) (string, error) {
	return db.QueryValue[string](ctx, tx, `INSERT INTO attest_installs (id, account_id, app_id, platform, key_hash,
			public_key, app, counter, environment, project_key, created_at, attested_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)
		ON CONFLICT (account_id, app_id, key_hash) `+conflict+` RETURNING id`,
		i.id, i.who.AccountID, i.who.Project, i.platform, i.keyHash, i.publicKey, i.app, int64(i.counter), i.environment,
		i.who.KeyID, db.ToMS(i.now), db.ToMS(i.expires))
}

// InsertInstall stores a new install. It returns *Refused if its key is known.
func (s *Store) InsertInstall(ctx context.Context, i stored) (string, error) {
	return s.attest(ctx, i, ReasonKnownKey, func(tx *sql.Tx) (string, error) {
		return insertInstall(ctx, tx, i, `DO NOTHING`)
	})
}

// RenewInstall stores a new install or renews a known one. It returns *Refused if the install is revoked.
func (s *Store) RenewInstall(ctx context.Context, i stored) (string, error) {
	return s.attest(ctx, i, ReasonRevoked, func(tx *sql.Tx) (string, error) {
		return insertInstall(ctx, tx, i, `DO UPDATE SET attested_at = excluded.attested_at,
			expires_at = excluded.expires_at, project_key = excluded.project_key, app = excluded.app
			WHERE attest_installs.revoked_at IS NULL`)
	})
}

// CountInstall renews an install whose counter is below the new one. It returns *Refused if another assertion has just
// used the counter, or the install was revoked.
func (s *Store) CountInstall(ctx context.Context, i stored) (string, error) {
	return s.attest(ctx, i, "wrong_counter", func(tx *sql.Tx) (string, error) {
		return db.QueryValue[string](ctx, tx, `UPDATE attest_installs SET counter = $2, attested_at = $3, expires_at = $4,
				project_key = $5 WHERE id = $1 AND counter < $2 AND revoked_at IS NULL RETURNING id`,
			i.id, int64(i.counter), db.ToMS(i.now), db.ToMS(i.expires), i.who.KeyID)
	})
}

// attest writes an install and its token, and deletes the tokens that are no longer kept. It refuses the attestation if
// write returns no row, and returns errChanged if the settings have changed since they were read.
func (s *Store) attest(
	ctx context.Context, i stored, reason string, write func(tx *sql.Tx) (string, error),
) (id string, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) (err error) {
		if err := s.lockSettings(ctx, tx, i); err != nil {
			return err
		}
		id, err = write(tx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return &Refused{reason}
		case err != nil:
			return fmt.Errorf("save install: %w", err)
		}
		return db.ExecAll(ctx, tx, "save attestation",
			db.Stmt(`INSERT INTO attest_tokens (hash, install_id, project_key, expires_at) VALUES ($1, $2, $3, $4)`,
				i.tokenHash, id, i.who.KeyID, db.ToMS(i.expires)),
			db.Stmt(`DELETE FROM attest_tokens WHERE install_id = $1 AND (expires_at <= $2 OR hash IN
				(SELECT hash FROM attest_tokens WHERE install_id = $1 AND hash <> $3
					ORDER BY expires_at DESC, hash LIMIT $4 OFFSET $5))`, id, db.ToMS(i.now), i.tokenHash, 10*maxTokens,
				maxTokens-1))
	})
	return id, err
}

// lockSettings blocks changes to the settings until the transaction ends, so that a change ends every token that was
// issued before. It locks the project first, as other transactions do. It returns errChanged if the settings have
// changed since the install was verified, and *Refused if the project is gone.
func (s *Store) lockSettings(ctx context.Context, tx *sql.Tx, i stored) error {
	known, err := db.Exists(ctx, tx, `SELECT 1 FROM projects p WHERE p.account_id = $1 AND p.app_id = $2`+
		s.ForKeyShare("p"), i.who.AccountID, i.who.Project)
	if err := db.Require(known, err, &Refused{ReasonNotConfigured}); err != nil {
		return err
	}
	same, err := db.Exists(ctx, tx, `SELECT 1 FROM attest_settings x WHERE x.account_id = $1 AND x.app_id = $2
		AND x.version = $3`+s.ForShare("x"), i.who.AccountID, i.who.Project, i.settings)
	return db.Require(same, err, errChanged)
}

func (s *Store) installByKey(ctx context.Context, who projects.KeyOwner, keyHash string) (stored, error) {
	return db.One(ctx, s, ErrNoInstall, func(row db.Row) (i stored, err error) {
		err = row.Scan(&i.id, &i.publicKey, &i.app, &i.environment, &i.counter, &i.revoked)
		i.keyHash = keyHash
		return i, err
	}, `SELECT id, public_key, app, environment, counter, revoked_at IS NOT NULL FROM attest_installs
		WHERE account_id = $1 AND app_id = $2 AND key_hash = $3 AND platform = '`+PlatformApple+`'`, who.AccountID,
		who.Project, keyHash)
}

// keyLive is true if the project key that an install attested with is not revoked. Installs whose tokens were ended
// have none.
const keyLive = `(SELECT COUNT(*) FROM project_keys k WHERE k.id = i.project_key AND k.revoked_at IS NULL) = 1`

// live selects installs whose tokens are accepted: neither the install nor the project key that it used is revoked, and
// the account is active.
const live = ` AND i.revoked_at IS NULL AND ` + keyLive + `
	AND (SELECT COUNT(*) FROM accounts a WHERE a.id = i.account_id AND a.state = 'active') = 1`

// CallerByToken returns the owner of a valid token, or ErrBadToken.
func (s *Store) CallerByToken(ctx context.Context, hash string, now time.Time) (Caller, error) {
	return db.One(ctx, s, ErrBadToken, func(row db.Row) (c Caller, err error) {
		err = row.Scan(&c.Account, &c.Project, &c.Install)
		return c, err
	}, `SELECT i.account_id, i.app_id, i.id FROM attest_installs i
		WHERE i.id = (SELECT t.install_id FROM attest_tokens t WHERE t.hash = $1 AND t.expires_at > $2
			AND (SELECT COUNT(*) FROM project_keys k WHERE k.id = t.project_key AND k.revoked_at IS NULL) = 1)`+live,
		hash, db.ToMS(now))
}

// LiveInstalls returns the IDs in ids of installs whose calls may continue, in any order. It accepts at most a few
// hundred IDs.
func (s *Store) LiveInstalls(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.All(ctx, s, db.Value[string], `SELECT i.id FROM attest_installs i WHERE i.id IN `+
		db.Placeholders(len(ids), 1)+live, db.Args(ids)...)
}

// CountRefusal counts a refused attestation.
func (s *Store) CountRefusal(ctx context.Context, who projects.KeyOwner, platform, reason string, at time.Time) error {
	err := s.Write(ctx, func(tx *sql.Tx) error {
		return db.Exec(ctx, tx, "count refused attestation", `INSERT INTO attest_refusals
				(account_id, app_id, day, platform, reason, count, last_at)
			VALUES ($1, $2, $3, $4, $5, 1, $6) ON CONFLICT (account_id, app_id, day, platform, reason)
			DO UPDATE SET count = attest_refusals.count + 1, last_at = excluded.last_at`, who.AccountID, who.Project,
			at.UTC().Format(time.DateOnly), platform, reason, db.ToMS(at))
	})
	if errors.Is(err, db.ErrNoProject) { // it has just been deleted
		return nil
	}
	return err
}

// Refusals sums a project's refusals since a time, most frequent first.
func (s *Store) Refusals(ctx context.Context, account, project string, since time.Time) ([]Refusal, error) {
	return db.All(ctx, s, func(row db.Row) (r Refusal, err error) {
		err = row.Scan(&r.Platform, &r.Reason, &r.Count, db.IntoTime(&r.LastAt))
		return r, err
	}, `SELECT platform, reason, CAST(SUM(count) AS BIGINT), MAX(last_at) FROM attest_refusals
		WHERE account_id = $1 AND app_id = $2 AND day >= $3
		GROUP BY platform, reason ORDER BY SUM(count) DESC, platform, reason`, account, project,
		since.UTC().Format(time.DateOnly))
}

// Counts returns the number of a project's installs in each state.
func (s *Store) Counts(ctx context.Context, account, project string, now time.Time) (map[State]int64, error) {
	counts := map[State]int64{}
	err := db.Each(ctx, s, func(row db.Row) error {
		var attested, expired, revoked int64
		err := row.Scan(&attested, &expired, &revoked)
		counts[Attested], counts[Expired], counts[Revoked] = attested, expired, revoked
		return err
	}, `SELECT COALESCE(SUM(CASE WHEN revoked = 0 AND live = 1 THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN revoked = 0 AND live = 0 THEN 1 ELSE 0 END), 0), COALESCE(SUM(revoked), 0)
		FROM (SELECT CASE WHEN i.revoked_at IS NULL THEN 0 ELSE 1 END AS revoked,
				CASE WHEN i.expires_at > $3 AND `+keyLive+` THEN 1 ELSE 0 END AS live
			FROM attest_installs i WHERE i.account_id = $1 AND i.app_id = $2) x`, account, project, db.ToMS(now))
	return counts, err
}

// position is a place in the list of installs: after the install with an ID that attested at a time in milliseconds.
type position struct {
	at int64
	id string
}

func positionOf(i Install) position { return position{db.ToMS(i.AttestedAt), i.ID} }

func (p position) String() string { return fmt.Sprintf("%d.%s", p.at, p.id) }

// parsePosition returns the beginning of the list if text is not a position.
func parsePosition(text string) position {
	at, id, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return position{at: math.MaxInt64}
	}
	return position{ms, id}
}

// Latest lists a project's installs after a position, newest attestation first.
func (s *Store) Latest(ctx context.Context, account, project string, after position, limit int) ([]Install, error) {
	return db.All(ctx, s, func(row db.Row) (i Install, err error) {
		err = row.Scan(&i.ID, &i.Platform, &i.App, &i.Environment, db.IntoTime(&i.CreatedAt), db.IntoTime(&i.AttestedAt),
			db.IntoTime(&i.ExpiresAt), db.IntoTime(&i.RevokedAt), &i.Ended)
		return i, err
	}, `SELECT i.id, i.platform, i.app, i.environment, i.created_at, i.attested_at, i.expires_at, i.revoked_at,
			NOT (`+keyLive+`)
		FROM attest_installs i WHERE i.account_id = $1 AND i.app_id = $2 AND i.attested_at <= $3
			AND (i.attested_at < $3 OR i.id > $4)
		ORDER BY i.attested_at DESC, i.id LIMIT $5`, account, project, after.at, after.id, limit)
}

// SweepAttestations deletes installs that last attested before installs, counts of refusals of days before refusals,
// and challenges that expired before now. It looks for installs before it locks anything, because no index helps.
func (s *Store) SweepAttestations(ctx context.Context, installs, refusals, now time.Time) error {
	due, err := db.All(ctx, s, db.Value[string], `SELECT id FROM attest_installs WHERE attested_at < $1`,
		db.ToMS(installs))
	if err != nil {
		return fmt.Errorf("list installs that are no longer kept: %w", err)
	}
	for part := range slices.Chunk(due, atOnce) {
		_, err := s.Exec(ctx, "sweep installs", `DELETE FROM attest_installs WHERE attested_at < $1 AND id IN `+
			db.Placeholders(len(part), 2), append([]any{db.ToMS(installs)}, db.Args(part)...)...)
		if err != nil {
			return err
		}
	}
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.ExecAll(ctx, tx, "sweep attestations",
			db.Stmt(`DELETE FROM attest_refusals WHERE day < $1`, refusals.UTC().Format(time.DateOnly)),
			db.Stmt(`DELETE FROM attest_challenges WHERE expires_at <= $1`, db.ToMS(now)))
	})
}

// Revoke revokes an install of the entry's project and deletes its tokens. It returns ErrNoInstall.
func (s *Store) Revoke(ctx context.Context, id string, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		revoked, err := db.Changed(ctx, tx, "revoke install", `UPDATE attest_installs SET revoked_at = $4
			WHERE id = $1 AND account_id = $2 AND app_id = $3 AND revoked_at IS NULL`, id, e.AccountID, e.Project,
			db.ToMS(e.At))
		if err != nil {
			return err
		}
		if !revoked {
			known, err := db.Exists(ctx, tx, `SELECT 1 FROM attest_installs WHERE id = $1 AND account_id = $2
				AND app_id = $3`, id, e.AccountID, e.Project)
			return db.Require(known, err, ErrNoInstall)
		}
		return db.ExecAll(ctx, tx, "revoke install", db.Stmt(`DELETE FROM attest_tokens WHERE install_id = $1`, id),
			audit.Statement(e))
	})
}
