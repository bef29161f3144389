// Follows the state of the glasses, and shows its text again whenever they can show it.
import Foundation

@main
struct State {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "State", version: "1.0"))
        var text = "All is well"
        try await draw(glasses, text)
        for try await event in glasses.events {
            let payload = event.payload
            switch event.type {
            case "battery":
                let level = payload["level"] as? Int ?? 100
                if level <= 15 && payload["charging"] as? Bool == false { text = "Battery: \(level) %" }
            case "permission":
                if payload["state"] as? String == "denied" { text = "Not allowed: \(payload["part"] as? String ?? "")" }
            case "hinge", "wear", "thermal", "link", "device":
                break
            default:
                continue
            }
            try await draw(glasses, text)
        }
    }

    static func draw(_ glasses: Glasses, _ text: String) async throws {
        do {
            try await glasses.show(["type": "text", "text": text])
        } catch let error as GlassesError where error.code != "closed" {
            print("not shown (\(error.code)): \(error.message)") // folded, too hot, not worn: an event says when that ends
        }
    }
}
