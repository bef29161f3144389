package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/credit"
)

func TestCredit_ShowsBalanceAndEveryTransfer(t *testing.T) {
	h := newFakeDashboard()
	h.credit.spend(120)
	h.credit.transfers = append([]credit.Transfer{
		{ID: "reference:INV-8", Credit: credit.BookPaidIn, Amount: 500_000, At: then, Note: "refund <b>"},
		{ID: "reference:INV-7", Debit: credit.BookPaidIn, Amount: 5_000_000, At: then},
	}, h.credit.transfers...)
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(creditPath).want(http.StatusOK, "$1.8532", "$0.02", "$0.0125", "$0.1268",
		"$2.00, granted once", h.credit.account.Book, "This backend has no payment page", "INV-8 · refund &lt;b&gt;", "−$0.50",
		"Paid in", "&#43;$5.00", "Older")
	v.lacks("Newer", "credit_locked", "Free credit</th>", "Pay in</a>")
	rows := strings.Count(v.page, `data-label="Amount"`)
	for _, page := range []string{"?page=2", "?page=3"} {
		v.get(creditPath+page).want(http.StatusOK, "Newer")
		rows += strings.Count(v.page, `data-label="Amount"`)
	}
	if rows != len(h.credit.transfers) {
		t.Errorf("%d transfers on three pages, there are %d", rows, len(h.credit.transfers))
	}
	v.want(http.StatusOK, "Free credit<", "&#43;$2.00").lacks("Older")
	for _, odd := range []string{"?page=0", "?page=-1", "?page=x", "?page=99999999999999999999"} {
		v.get(creditPath+odd).want(http.StatusOK, "INV-8")
	}
}

func TestCredit_SaysWhatWaitsAndWhereToPay(t *testing.T) {
	h := newFakeDashboard()
	h.credit.account.Locked = true
	h.credit.account.TopUpURL = "https://pay.example.org/?account=acct_x"
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	v.get(creditPath).want(http.StatusOK, "Confirm your mail address", `href="https://pay.example.org/?account=acct_x"`)
	v.lacks("This backend has no payment page")
	v.get("/account").want(http.StatusOK, "$1.8532 available; spent $0.0125 today and $0.1268 this month",
		"Confirm your mail address")
	v.get(helloPath).want(http.StatusOK, "Calls to models cost $0.0125 today and $0.1268 this month")
}

func TestCredit_CapsTellTheCostBeforeAndAfter(t *testing.T) {
	h := newFakeDashboard()
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(creditPath).want(http.StatusOK, "the account&#39;s whole credit")
	caps := creditPath + "/caps"
	v.post(caps, v.form("cap-day", "0.50", "cap-month", "", "act", "cost")).want(http.StatusOK, "<strong>$15.50</strong>",
		`value="0.50"`)
	if len(h.called()) > 0 {
		t.Fatal("showing the cost saved something")
	}
	v.post(caps, v.form("cap-day", "a lot", "cap-month", "-1")).want(http.StatusUnprocessableEntity, `value="a lot"`,
		`id="cap-day-error"`, `id="cap-month-error"`, "<title>Error:")
	v.post(caps, v.form("cap-day", "9999999", "cap-month", "")).want(http.StatusUnprocessableEntity, `id="cap-day-error"`)
	v.get(creditPath)
	v.post(caps, v.form("cap-day", "$0.50", "cap-month", "3")).onward().want(http.StatusOK, "It applies from the next call",
		`value="0.50"`, `value="3.00"`, "at most <strong>$3.00</strong>")
	v.post(caps, v.form("cap-day", "0", "cap-month", "")).onward().want(http.StatusOK, "at most <strong>$0.00</strong>")
	if c := h.credit.caps[""]; c.Day == nil || *c.Day != 0 || c.Month != nil {
		t.Errorf("caps %+v", c)
	}
}
