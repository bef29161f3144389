package tools

import "github.com/service-dev/service/proto/glasses"

// wordEvent is an event as a guide tells of it.
type wordEvent struct {
	Type    string  `json:"type"`
	Payload []field `json:"payload"`
	When    string  `json:"when"`
	// Binary frames have a body; Stream frames are counted in the event log instead of listed.
	Binary bool `json:"binary"`
	Stream bool `json:"stream"`
}

const wordEventSchema = `{"type":"object","properties":{
	"type":{"type":"string"},"payload":{"type":"array","items":` + fieldSchema + `},"when":{"type":"string"},
	"binary":{"type":"boolean","description":"A binary frame: two bytes with the header's length (big-endian), the header as JSON, the bytes."},
	"stream":{"type":"boolean","description":"Counted in the event log (stream.counted) instead of listed."}}}`

// wordEvents tells of every event of the glasses.
func wordEvents() []wordEvent {
	list := []wordEvent{
		{Type: glasses.TypeInput, When: "the wearer did something", Payload: fields(
			choice("kind", "which of them a model has stands in its inputs", glasses.InputKinds()...).must(),
			other("x", "integer", "panel pixels from the left, of a tap on a touch panel").must(), other("y", "integer", "panel pixels from the top").must(),
			choice("direction", "of swipe and navigate", "up", "down", "left", "right"), choice("side", "the touch bar, where there are two", "left", "right"),
			text("target", "id of the node that was tapped, selected or has the focus now; left out when there is none"))},
		{Type: glasses.TypeTranscript, When: "somebody spoke, while transcription runs", Payload: fields(
			number("text", "what was understood", 1, glasses.MaxSay).as("string").must(), truth("final", "false while it may still change").must(),
			text("language", "BCP 47"), number("confidence", "percent; left out where nobody says", 0, 100))},
		{Type: glasses.TypeSpeech, When: "a speech.say is over", Payload: fields(text("id", "of the speech.say").must(), choice("state", "", "finished", "stopped").must())},
		{Type: glasses.TypeMotion, When: "while motion runs", Payload: axes()},
		{Type: glasses.TypeBattery, When: "it changed", Payload: fields(number("level", "percent", 0, 100).must(), truth("charging", "").must())},
		{Type: glasses.TypeWear, When: "put on or taken off", Payload: fields(truth("worn", "").must())},
		{Type: glasses.TypeHinge, When: "opened or folded", Payload: fields(choice("state", "", glasses.HingeOpen, glasses.HingeFolded).must())},
		{Type: glasses.TypeThermal, When: "it got warmer or cooler", Payload: fields(choice("state", "", glasses.ThermalNominal, glasses.ThermalWarm, glasses.ThermalCritical).must())},
		{Type: glasses.TypeLink, When: "glasses attached, left, or their link changed", Payload: fields(choice("state", "", glasses.LinkConnected, glasses.LinkLossy, glasses.LinkLost, glasses.LinkDisconnected).must())},
		{Type: glasses.TypeRoute, When: "sound goes elsewhere", Payload: fields(choice("to", "", glasses.RouteGlasses, glasses.RoutePhone).must())},
		{Type: glasses.TypeCall, When: "a phone call began or ended", Payload: fields(truth("active", "").must())},
		{Type: glasses.TypePermission, When: "the person granted or refused a part", Payload: fields(choice("part", "", wordParts()...).must(), choice("state", "", glasses.PermissionGranted, glasses.PermissionDenied).must())},
		{Type: glasses.TypeDisabled, When: "the wearer switched parts off or on", Payload: fields(other("parts", "array", "all that are off").must())},
		{Type: glasses.TypeDevice, When: "other glasses took the place; the panel is clear and streams have stopped", Payload: fields(other("deviceModel", "object", "as in the welcome frame").must())},
		{Type: glasses.TypeFault, When: "a fault was set by injectFault; for the record, apps ignore it", Payload: faultFields()},
		{Type: glasses.TypeMedia, Binary: true, When: "just before the result of camera.photo or camera.video, with the same id", Payload: content("image/jpeg or video/x-motion-jpeg")},
		{Type: glasses.TypeAudioChunk, Binary: true, When: "every 100 ms while audio runs; 16-bit little-endian PCM, one channel", Payload: content("audio/L16")},
		{Type: glasses.TypeVideoFrame, Binary: true, When: "while video runs; a JPEG each", Payload: content("image/jpeg")},
	}
	for i := range list {
		list[i].Stream = glasses.IsStream(list[i].Type)
	}
	return list
}

// content are the fields of glasses.Media, which describes the bytes of a binary frame.
func content(mime string) []field {
	return fields(text("sha256", "of the bytes").must(), text("mime", mime).must(), other("bytes", "integer", "how many").must(),
		other("width", "integer", "pixels, of pictures and clips"), other("height", "integer", "the same"),
		other("durationMs", "integer", "of clips and sounds"), other("sampleRate", "integer", "Hz, of sounds"))
}

func wordParts() []string {
	return []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech}
}

func axes() []field {
	const g, rotation = "acceleration, thousandths of g", "rotation, thousandths of a degree a second"
	return fields(other("ax", "integer", g).must(), other("ay", "integer", g).must(), other("az", "integer", g+"; 1000 at rest").must(),
		other("gx", "integer", rotation).must(), other("gy", "integer", rotation).must(), other("gz", "integer", rotation).must())
}

// faultFields are those of sim.fault and of injectFault.
func faultFields() []field {
	return fields(text("command", "a command's type; left out: any command"), choice("code", "what answers it", glasses.CommandCodes()...),
		number("latencyMs", "how late the answer is", 0, 60_000), number("times", "how many commands", 1, 1000).or(1), truth("clear", "forget all faults first"))
}

func wordEventsOf(types []string) []wordEvent {
	some := []wordEvent{}
	for _, typ := range types {
		for _, e := range wordEvents() {
			if e.Type == typ {
				some = append(some, e)
			}
		}
	}
	return some
}
