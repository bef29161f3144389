package connpage

import "github.com/service-dev/service/glasses/guide"

// ability describes to the wearer, in plain words, one way in which an app uses the glasses.
type ability struct{ Name, About string }

var words = map[string]ability{
	guide.Display:       {"Display", "Shows text and pictures in your glasses."},
	guide.Camera:        {"Camera", "Takes photos and videos with your glasses."},
	guide.Microphone:    {"Microphone", "Listens through your glasses' microphone."},
	guide.Transcription: {"Voice to text", "Writes down what you say, to understand it."},
	guide.Speech:        {"Voice", "Speaks to you."},
	guide.Sound:         {"Sounds", "Plays short sounds."},
	guide.Motion:        {"Head movement", "Notices how you move your head."},
	guide.Input:         {"Taps and swipes", "Reacts when you touch your glasses."},
	guide.State:         {"Battery and wear", "Knows whether you wear your glasses and how full their battery is."},
	guide.Phrases:       {"Spoken commands", "Understands phrases that you say."},
	guide.Assistant:     {"Assistant", "Answers you with the help of a language model."},
	guide.Time:          {"Timers", "Can wait and remind you later."},
}

func abilities(ids []string) []ability {
	var all []ability
	for _, id := range ids {
		if a, ok := words[id]; ok {
			all = append(all, a)
		}
	}
	return all
}
