package g1

// Events (AGiXT; the meaning of 04 and 05 is from Mentra).
const (
	eventDoubleTap      = 0x00
	eventTap            = 0x01
	eventHeadUp         = 0x02
	eventHeadDown       = 0x03
	eventSilenced       = 0x04
	eventActive         = 0x05
	eventWorn           = 0x06
	eventTakenOff       = 0x07
	eventCaseOpen       = 0x08
	eventCharging       = 0x09
	eventBattery        = 0x0A // wiki
	eventCaseClosed     = 0x0B
	eventCaseBattery    = 0x0F
	eventHold           = 0x17
	eventRelease        = 0x18
	eventDashboardOpen  = 0x1E
	eventDashboardClose = 0x1F
)

// An audio packet has 202 bytes: F1, a sequence number and 200 bytes of LC3, which are 100 ms (vendor: BleManager.kt).
const (
	audioBytes  = 200
	audioPeriod = 100
	maxAudio    = audioBytes * 6000
)

func (p *Pair) event(s Side, value ...byte) {
	p.arms[s].Notify(NotifyUUID, pad(append([]byte{cmdEvent}, value...)...))
}

func (p *Pair) both(value ...byte) {
	p.event(Left, value...)
	p.event(Right, value...)
}

func (p *Pair) closePanels() {
	p.arms[Left].closePanel()
	p.arms[Right].closePanel()
}

// Tap touches an arm once.
func (p *Pair) Tap(now int64, s Side) {
	p.tick(now)
	p.event(s, eventTap)
}

// DoubleTap touches an arm twice, which closes the pictures on the panels (vendor: README.md).
func (p *Pair) DoubleTap(now int64, s Side) {
	p.tick(now)
	p.closePanels()
	p.event(s, eventDoubleTap)
}

// TripleTap switches silent mode. Silent panels show nothing, and do not show later what they receive meanwhile.
func (p *Pair) TripleTap(now int64, s Side) {
	p.tick(now)
	p.silent = !p.silent
	if !p.silent {
		p.event(s, eventActive)
		return
	}
	p.closePanels()
	p.event(s, eventSilenced)
}

// Hold starts or ends a long touch.
func (p *Pair) Hold(now int64, s Side, down bool) {
	p.tick(now)
	p.event(s, choose(down, eventHold, eventRelease))
}

// HeadUp raises or lowers the wearer's head.
func (p *Pair) HeadUp(now int64, up bool) {
	p.tick(now)
	p.both(choose(up, eventHeadUp, eventHeadDown))
}

// Dashboard opens or closes the glasses' own screen, which replaces the pictures on the panels.
func (p *Pair) Dashboard(now int64, s Side, open bool) {
	p.tick(now)
	p.closePanels()
	p.event(s, choose(open, eventDashboardOpen, eventDashboardClose))
}

// Wear puts the glasses on or takes them off.
func (p *Pair) Wear(now int64, on bool) {
	p.tick(now)
	p.both(choose(on, eventWorn, eventTakenOff))
}

// InCase puts the glasses in their case.
func (p *Pair) InCase(now int64, lidOpen bool) {
	p.tick(now)
	p.closePanels()
	p.both(choose(lidOpen, eventCaseOpen, eventCaseClosed))
}

// Battery sets the charge of an arm in percent.
func (p *Pair) Battery(now int64, s Side, percent int) {
	p.tick(now)
	p.arms[s].battery = percent
	p.event(s, eventBattery, byte(percent))
}

// CaseBattery sets the charge of the case in percent.
func (p *Pair) CaseBattery(now int64, percent int) {
	p.tick(now)
	p.both(eventCaseBattery, byte(percent))
}

// Charging sets whether the case charges the glasses.
func (p *Pair) Charging(now int64, on bool) {
	p.tick(now)
	p.both(eventCharging, choose(on, 1, 0))
}

// Debug sends a debug message of the firmware if the client has enabled them.
func (p *Pair) Debug(now int64, s Side, text string) {
	p.tick(now)
	if p.arms[s].debug {
		p.arms[s].Notify(NotifyUUID, append(append([]byte{cmdDebug}, text...), 0)) // wiki
	}
}

func choose(condition bool, yes, no byte) byte {
	if condition {
		return yes
	}
	return no
}

// Speak queues LC3 sound that the microphone hears while it is on. A remainder of less than 100 ms waits for more
// sound. The queue holds at most ten minutes.
func (p *Pair) Speak(now int64, lc3 []byte) {
	p.tick(now)
	p.audio = append(p.audio, lc3[:min(len(lc3), maxAudio-len(p.audio))]...)
}

// setMicrophone switches the microphone. The sequence number restarts (wiki).
func (p *Pair) setMicrophone(on bool) {
	if p.microphone == on {
		return
	}
	p.microphone, p.audioSeq = on, 0
	p.audioRunning++
	if on {
		p.nextAudio(p.audioRunning)
	}
}

func (p *Pair) nextAudio(running int) {
	p.arms[Right].AfterLinked(audioPeriod, func() {
		if p.audioRunning != running {
			return
		}
		if len(p.audio) >= audioBytes {
			p.arms[Right].Notify(NotifyUUID, append([]byte{cmdAudio, p.audioSeq}, p.audio[:audioBytes]...))
			p.audio = p.audio[audioBytes:]
			p.audioSeq++
		}
		p.nextAudio(running)
	})
}
