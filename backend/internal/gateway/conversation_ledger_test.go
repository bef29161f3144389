package gateway

import (
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/test/llmtest"
)

// After answers in text and sound from providers that report their usage oddly, the real ledger has charged what the
// provider's book says, to the micro-dollar, and adds up.
func TestConversation_LedgerEqualsBook(t *testing.T) {
	store := dbtest.Open(t)
	err := account.NewStore(store).InsertAccount(t.Context(), account.Account{ID: "acc", Email: "acc@example.org",
		PasswordHash: "x", Active: true, PrivacyAccepted: time.Now(), CreatedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	dbtest.AddProject(t, store, "acc", "com.example.app")
	ledger := credit.New(credit.Options{Store: credit.NewStore(store), Free: 2 * credit.USD,
		Hasher: secret.NewHasher([]byte("a key of thirty-two bytes or more"))})
	w := newWorld(t, 0, talkLimits, func(o *Options) { o.Purse = ledger })
	for _, model := range []string{llmtest.Good, llmtest.DoneTwice, llmtest.DoneFirst, llmtest.UsageZero,
		llmtest.LateReceipt, llmtest.FailedAnswer} {
		a := w.talk(t, model, time.Minute)
		a.send(askText, askAnswer)
		a.until("response.done")
		for range 3 {
			a.send(appendOnce)
			a.until("response.done")
		}
	}
	var booked, charged credit.Amount
	for _, b := range w.provider.Answers() {
		booked += credit.Amount(b.Bill(llmtest.CatalogueVoicePrices))
	}
	var sound int64
	err = credit.NewStore(store).Usage(t.Context(), credit.UsageQuery{AccountID: "acc", To: time.Now().Add(time.Hour)},
		func(row credit.UsageRow) error {
			charged, sound = charged+row.Charged, sound+row.AudioIn+row.AudioCached+row.AudioOut
			return nil
		})
	if err != nil || charged != booked || booked == 0 || sound != 15*25 {
		t.Errorf("the ledger has %v and %d tokens of sound, the provider's book %v (error %v)", charged, sound, booked, err)
	}
	report, err := ledger.Check(t.Context())
	if err != nil || len(report.Differences) > 0 {
		t.Errorf("the ledger does not add up: %+v, %v", report, err)
	}
}
