// Counts down on the session's clock, which a test may run in virtual time. It draws once for each change, and sets
// the time of the next before it draws: late pictures do not slow it. A tap pauses and resumes it, back restarts it.
import Foundation

actor Countdown {
    static let seconds = 5
    let glasses: Glasses
    var left = Countdown.seconds
    var stop: (@Sendable () -> Void)? // while it runs

    init(_ glasses: Glasses) {
        self.glasses = glasses
    }

    func attempt(_ command: () async throws -> Void) async throws {
        do {
            try await command()
        } catch let error as GlassesError where error.code != "closed" {
            print("refused (\(error.code)): \(error.message)") // folded, not worn, no speaker, ...: the timer continues
        }
    }

    func draw() async throws {
        let hint = left == 0 ? "Done" : stop != nil ? "Tap to pause" : "Paused"
        let children: [JSONObject] = [
            ["type": "text", "style": "large", "text": String(left)],
            ["type": "text", "text": hint],
        ]
        try await attempt { try await glasses.show(["type": "column", "align": "center", "padding": 16, "children": children]) }
    }

    func tick() async throws {
        left -= 1
        let done = left == 0
        stop = try done ? nil : glasses.after(1000) { try await self.tick() }
        try await draw()
        if done { try await attempt { try await glasses.play("success") } }
    }

    func pause() {
        stop?()
        stop = nil
    }

    func start() throws {
        pause()
        if left == 0 { left = Countdown.seconds }
        stop = try glasses.after(1000) { try await self.tick() }
    }

    func handle(_ event: GlassesEvent) async throws {
        let kind = event.type == "input" ? event.payload["kind"] as? String : nil
        if kind == "back" {
            left = Countdown.seconds
            try start()
        } else if kind == "tap" || kind == "select" {
            if stop != nil { pause() } else { try start() }
        } else if !["hinge", "wear", "thermal", "link", "device"].contains(event.type) {
            return
        }
        try await draw()
    }
}

@main
struct App {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Timer", version: "1.0"))
        let countdown = Countdown(glasses)
        try await countdown.start()
        try await countdown.draw()
        for try await event in glasses.events { try await countdown.handle(event) }
    }
}
