package web

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A voice that the chosen model cannot speak with is disabled and explains why. A voice that a model ruled out returns
// with a compatible model.
func TestAssistant_DisablesVoicesOfOtherModels(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			h := newDashboardWorld(t)
			site := dashboardSite(t, h)
			s := walkIn(t, site)
			s.scheme(scheme)
			s.do(chromedp.Navigate(site.URL+helloPath+"/assistant"), chromedp.Click("#voice-harbor"),
				chromedp.Click("#realtimeModel-swift"))
			s.see(`document.querySelector("#voice-harbor").disabled && !document.querySelector("#voice-harbor").checked`)
			if got := s.text("#voice-harbor-reason"); got != "Not with Swift." {
				t.Errorf("the reason is %q, want the model named", got)
			}
			if got := s.text("#voice-status"); got != "Harbor does not go with Swift. Choose another voice." {
				t.Errorf("the status is %q, want what to do", got)
			}
			s.noObstacles(scheme + "-assistant-voices")
			s.do(chromedp.Click("#realtimeModel-standard"))
			s.see(`document.querySelector("#voice-harbor").checked && !document.querySelector("#voice-harbor").disabled`)
			if got := s.text("#voice-status"); got != "" {
				t.Errorf("the status is still %q", got)
			}
			s.do(chromedp.Click("#realtimeModel-swift"), chromedp.Click("#voice-ember"), chromedp.Submit("#voice-ember"))
			s.see(`document.body.innerText.includes("Saved.")`)
			if h.config().RealtimeModel != "swift" || h.config().Voice != "ember" {
				t.Errorf("saved %+v, want Swift with Ember", h.config())
			}
		})
	}
}

// Without scripts, each voice lists its models, and the server refuses incompatible choices in plain words.
func TestAssistant_ChecksVoicesWithoutScripts(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	s := walkIn(t, site)
	s.withoutScripts()
	s.do(chromedp.Navigate(site.URL + helloPath + "/assistant"))
	if got := s.text("#voice-harbor-about"); !strings.Contains(got, "Goes with Standard only.") {
		t.Errorf("the voice says %q, want the models that it goes with", got)
	}
	s.do(chromedp.Click("#voice-harbor"), chromedp.Click("#realtimeModel-swift"), chromedp.Submit("#voice-harbor"))
	s.see(`document.activeElement.id === "summary"`)
	if got := s.text("#voice-error"); !strings.Contains(got, "Choose Ember, or another model.") {
		t.Errorf("the problem is %q, want what to choose", got)
	}
	s.noObstacles("assistant-refused")
}

// A stored key shows its last characters, when it was set and its use.
func TestCredentials_SayWhatTheyAreFor(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			h := newDashboardWorld(t)
			h.setOpenAIKey()
			h.spendOnModels()
			site := dashboardSite(t, h)
			s := walkIn(t, site)
			s.scheme(scheme)
			s.withoutScripts()
			s.do(chromedp.Navigate(site.URL + helloPath + "/credentials"))
			text := s.text(".credential")
			for _, want := range []string{"...wxyz", "20 Nov 2026", "by you", "Used for", "your credit pays", "Let this key pay"} {
				if !strings.Contains(text, want) {
					t.Errorf("the stored key does not say %q:\n%s", want, text)
				}
			}
			s.noObstacles(scheme + "-credentials")
			s.do(chromedp.Click(`a[href$="/gateway#source"]`))
			s.see(`location.pathname.endsWith("/gateway") && document.querySelector(":target")`)
		})
	}
}
