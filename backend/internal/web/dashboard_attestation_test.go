package web

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/attest/attesttest"
)

const helloAttestation = helloGateway + "/attestation"

func TestAttestation_SettingsAreCheckedAndShown(t *testing.T) {
	h := newDashboardWorld(t)
	v := signedIn(t, dashboardSite(t, h), ada).get(helloGateway).want(http.StatusOK, "Attested installs", "Not set.")
	v.post(helloAttestation, v.form("version", "0", "apple-apps", "com.example.app")).
		want(http.StatusUnprocessableEntity, `id="apple-apps-error"`, "com.example.app</textarea>")
	v.post(helloAttestation, v.form("version", "0", "apple-apps", "ABCDE12345.com.example.app\r\nABCDE12345.com.example.b",
		"apple-development", "on", "packages", " com.example.app", "certificates", strings.Repeat("AB:", 31)+"AB")).
		onward().want(http.StatusOK, "It applies from the next attestation", "ABCDE12345.com.example.b</textarea>",
		strings.Repeat("ab", 32), `value="on" checked`).lacks("have ended")
	v.want(http.StatusOK, `name="packages" value="com.example.app"`)
	v.post(helloAttestation, v.form("version", "0")).want(http.StatusUnprocessableEntity, "have changed since you opened")
	v.post(helloAttestation, v.form("version", "1", "packages", "com.example.app com.example.b")).
		want(http.StatusUnprocessableEntity, `id="packages-error"`, "another app needs a project of its own")
	v.post(helloAttestation, v.form("version", "1", "packages", "com.example.app")).onward().
		want(http.StatusOK, "It applies from the next attestation. Tokens of what you removed have ended.")
	v.get(activityPath).want(http.StatusOK, "Attestation settings changed", "Android packages", "<bdi>com.example.app</bdi>")

	decryption, verification := attesttest.NewGoogle(t).Keys(t)
	v.post(helloAttestation+"/keys", v.form("decryption-key", "x", "verification-key", verification)).
		want(http.StatusUnprocessableEntity, `id="decryption-key-error"`)
	v.post(helloAttestation+"/keys", v.form("decryption-key", decryption, "verification-key", verification)).onward().
		want(http.StatusOK, "The keys are stored.", "New keys replace them.").lacks(decryption)
	decryption, verification = attesttest.NewGoogle(t).Keys(t)
	v.post(helloAttestation+"/keys", v.form("decryption-key", decryption, "verification-key", verification)).onward().
		want(http.StatusOK, "The keys are replaced.")
	h.encryptWith(strings.Repeat("ab", 32))
	v.get(helloGateway).want(http.StatusOK, "this server cannot read them")
	remove := helloAttestation + "/keys/remove"
	v.get(remove).want(http.StatusOK, "Remove the keys of Play Integrity of", `action="`+remove+`"`)
	v.post(remove, v.form()).onward().want(http.StatusOK, "Android installs can no longer attest.", "Not set.").
		lacks(remove)
	v.post(remove, v.form()).onward().want(http.StatusOK, "nothing was changed")
	v.get(activityPath).want(http.StatusOK, "key of Play Integrity removed")
}

func TestAttestation_ListsInstallsAndRefusals(t *testing.T) {
	h := newDashboardWorld(t)
	v := signedIn(t, dashboardSite(t, h), ada)
	h.exec(`INSERT INTO attest_installs (id, account_id, app_id, platform, key_hash, public_key, app, counter, environment,
			project_key, created_at, attested_at, expires_at)
		VALUES ('inst1', $1, $2, 'development', 'h', '', '', 0, 'development', 'key1', 1, $3, $4)`, adaID, hello,
		then.UnixMilli(), then.Add(attest.TokenLife).UnixMilli())
	h.exec(`INSERT INTO attest_refusals VALUES ($1, $2, $3, 'apple', 'wrong_counter', 3, $4)`, adaID, hello,
		then.Format("2006-01-02"), then.UnixMilli())
	v.get(helloGateway).want(http.StatusOK, "<code>inst1</code>", `class="sub">development<`, "wrong_counter",
		`<span class="badge on">attested</span>`, `data-label="Count" class="number">3<`)
	revoke := helloAttestation + "/installs/inst1/revoke"
	v.post(revoke, v.form()).onward().want(http.StatusOK, "Its token no longer works", ">revoked</span>")
	v.lacks(revoke)
	h.exec(`INSERT INTO attest_installs (id, account_id, app_id, platform, key_hash, public_key, app, counter, environment,
			project_key, created_at, attested_at, expires_at)
		SELECT 'old' || (value + 10), $1, $2, 'apple', value, '', '', 0, 'production', 'gone', 1, $3, $4
			FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]')`, adaID, hello,
		then.Add(-time.Hour).UnixMilli(), then.Add(attest.TokenLife).UnixMilli())
	v.get(helloGateway).want(http.StatusOK, "<code>inst1</code>", "<code>old28</code>", "<dt>Expired</dt><dd>21</dd>").
		lacks("<code>old29</code>")
	next := regexp.MustCompile(`href="([^"]*after=[^"]*#attestation)">Next page`).FindStringSubmatch(v.page)
	if next == nil {
		t.Fatal("the page has no link to the next installs")
	}
	v.get(strings.TrimSuffix(html.UnescapeString(next[1]), "#attestation")).
		want(http.StatusOK, "<code>old29</code>", "<code>old30</code>", ">First page<").
		lacks("<code>inst1</code>", ">Next page<")
	last := regexp.MustCompile(`action="([^"]*old30/revoke[^"]*)"`).FindStringSubmatch(v.page)
	if last == nil {
		t.Fatal("the install on the second page cannot be revoked")
	}
	v.post(html.UnescapeString(last[1]), v.form()).onward().
		want(http.StatusOK, "Its token no longer works", "<code>old30</code>", ">revoked</span>")
	v.post(helloAttestation+"/installs/unknown/revoke", v.form()).want(http.StatusNotFound)
}

func TestAttestation_AllowanceOfKeysIsACap(t *testing.T) {
	h := newDashboardWorld(t)
	v := signedIn(t, dashboardSite(t, h), ada)
	caps := helloGateway + "/caps"
	v.get(helloGateway).want(http.StatusOK, "A day, by calls with a project key alone", "no limit for them")
	v.post(caps, v.form("version", "0", "cap-keys", "0.50")).onward().want(http.StatusOK, `value="0.50"`)
	v.post(caps, v.form("version", "1", "cap-keys", "x")).want(http.StatusUnprocessableEntity, `id="cap-keys-error"`)
	if keys := h.caps(hello).Keys; keys == nil || *keys != 500_000 {
		t.Errorf("got allowance %v, want 0.50 USD", keys)
	}
	form := v.form("version", "1", "cap-day", "2") // a page of an earlier version has no such field
	form.Del("cap-keys")
	v.post(caps, form).onward().want(http.StatusOK, `value="0.50"`)
	v.get(activityPath).want(http.StatusOK, "Spending caps changed", "Daily allowance of project keys", "0.50")
}
