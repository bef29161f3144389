// Shows a text and counts taps until the session is closed.
import Foundation

@main
struct Hello {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Hello", version: "1.0"))
        var taps = 0
        try await draw(glasses, taps)
        for try await event in glasses.events {
            if event.type == "input" && event.payload["kind"] as? String == "tap" {
                taps += 1
                try await draw(glasses, taps)
            } else if event.type == "device" && glasses.device["panel"] is JSONObject { // another model, whose panel is clear
                try await draw(glasses, taps)
            }
        }
    }

    static func draw(_ glasses: Glasses, _ taps: Int) async throws {
        let children: [JSONObject] = [
            ["type": "text", "text": "Hello, glasses", "style": "title"],
            ["type": "text", "text": taps == 0 ? "Tap me" : "Taps: \(taps)"],
        ]
        try await glasses.show(["type": "column", "gap": 8, "padding": 16, "children": children])
    }
}
