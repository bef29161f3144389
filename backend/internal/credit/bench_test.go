package credit_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/test/pgtest"
)

// BenchmarkCredit_Holds runs 100 clients of one account; all of them contend for one row. The variants are the ledger
// on SQLite, the ledger on a durable PostgreSQL, and one statement per hold there, a conditional update with an insert.
func BenchmarkCredit_Holds(b *testing.B) {
	cluster, err := pgtest.StartDurable()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Missing(b)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Stop()
	b.Run("sqlite", func(b *testing.B) { holdsOfLedger(b, filepath.Join(b.TempDir(), "service.db")) })
	b.Run("ours", func(b *testing.B) { holdsOfLedger(b, cluster.Database(b)) })
	b.Run("bare", func(b *testing.B) {
		client, err := sql.Open("pgx", cluster.Database(b))
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		client.SetMaxOpenConns(16)
		client.SetMaxIdleConns(16)
		if _, err := client.Exec(`CREATE TABLE balances (id BIGINT PRIMARY KEY, posted BIGINT, held BIGINT);
			CREATE TABLE holds (id BIGSERIAL PRIMARY KEY, account BIGINT, amount BIGINT);
			INSERT INTO balances VALUES (1, 2000000, 0)`); err != nil {
			b.Fatal(err)
		}
		holds(b, func() error {
			_, err := client.ExecContext(b.Context(), `WITH taken AS (UPDATE balances SET held = held + $1
				WHERE id = 1 AND posted - held >= $1 RETURNING id) INSERT INTO holds (account, amount) SELECT id, $1 FROM taken`, 1)
			return err
		})
	})
}

// holdsOfLedger measures the holds of our ledger.
func holdsOfLedger(b *testing.B, database string) {
	store, err := db.Open(b.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	account := uuid.NewString() // each run has its own
	addPurse(b, store, account, time.Now())
	ledger := newLedger(store, time.Now)
	holds(b, func() error {
		_, err := ledger.Hold(b.Context(), credit.HoldRequest{Account: account, Project: modelProjects[0], Amount: 1})
		return err
	})
}

// holds makes 100 clients hold one micro-USD repeatedly.
func holds(b *testing.B, hold func() error) {
	b.SetParallelism(50)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := hold(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "holds/s")
}
