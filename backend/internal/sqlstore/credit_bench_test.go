package sqlstore_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/test/pgtest"
)

// BenchmarkCredit_Holds runs 100 clients of one account on a durable PostgreSQL; all of them contend for one row. The
// bare variant uses one statement per hold, a conditional update with an insert.
func BenchmarkCredit_Holds(b *testing.B) {
	cluster, err := pgtest.StartDurable()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Missing(b)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer cluster.Stop()
	b.Run("ours", func(b *testing.B) {
		store, err := sqlstore.Open(b.Context(), cluster.Database(b), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		addPurse(b, store, "hot", time.Now())
		ledger := newLedger(store, time.Now)
		holds(b, func() error {
			_, err := ledger.Hold(b.Context(), credit.HoldRequest{Account: "hot", Project: modelProjects[0], Amount: 1})
			return err
		})
	})
	b.Run("bare", func(b *testing.B) {
		db, err := sql.Open("pgx", cluster.Database(b))
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(16)
		db.SetMaxIdleConns(16)
		if _, err := db.Exec(`CREATE TABLE balances (id BIGINT PRIMARY KEY, posted BIGINT, held BIGINT);
			CREATE TABLE holds (id BIGSERIAL PRIMARY KEY, account BIGINT, amount BIGINT);
			INSERT INTO balances VALUES (1, 2000000, 0)`); err != nil {
			b.Fatal(err)
		}
		holds(b, func() error {
			_, err := db.ExecContext(b.Context(), `WITH taken AS (UPDATE balances SET held = held + $1
				WHERE id = 1 AND posted - held >= $1 RETURNING id) INSERT INTO holds (account, amount) SELECT id, $1 FROM taken`, 1)
			return err
		})
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
