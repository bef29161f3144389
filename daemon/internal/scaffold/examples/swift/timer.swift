// Counts down on the session's clock, so that a test in virtual time need not wait for it.
import Foundation

@main
struct Timer {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Timer", version: "1.0"))
        for left in stride(from: 5, to: 0, by: -1) {
            try await glasses.show(big(String(left)))
            try await glasses.sleep(1000)
        }
        try await glasses.show(big("Done"))
        try await glasses.play("success")
        glasses.close()
    }

    static func big(_ text: String) -> JSONObject {
        ["type": "text", "text": text, "style": "title", "align": "center"]
    }
}
