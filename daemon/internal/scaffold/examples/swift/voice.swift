// Driven by voice: announces the phrases that it understands, listens, and answers aloud.
import Foundation

@main
struct Pages {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Pages", version: "1.0"))
        var page = 1
        try await glasses.announce(["next page", "previous page"])
        do {
            try await glasses.startTranscription()
        } catch let error as GlassesError {
            print("not listening: \(error.message)") // permission_denied, unsupported, ...
        }
        for try await event in glasses.events {
            guard event.type == "transcript", event.payload["final"] as? Bool == true else { continue }
            let heard = (event.payload["text"] as? String ?? "").lowercased()
            if heard.contains("next page") {
                page += 1
            } else if heard.contains("previous page") {
                page = max(1, page - 1)
            } else {
                continue
            }
            try await glasses.say("Page \(page)")
        }
    }
}
