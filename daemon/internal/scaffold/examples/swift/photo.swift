// Takes a photo when the capture button is pressed, and says why if it cannot.
import Foundation

@main
struct Camera {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Camera", version: "1.0"))
        try await glasses.show(["type": "text", "text": "Press the capture button"])
        for try await event in glasses.events {
            if event.type == "input" && event.payload["kind"] as? String == "capture" {
                let text = try await take(glasses)
                try await glasses.show(["type": "text", "text": text])
            }
        }
    }

    static func take(_ glasses: Glasses) async throws -> String {
        do {
            let photo = try await glasses.photo(width: 1280)
            return "\(photo.width) x \(photo.height), \(photo.data.count) bytes of \(photo.mime)"
        } catch let error as GlassesError {
            switch error.code {
            case "permission_denied": return "The camera is not allowed"
            case "busy", "media_lost": return "Please try again"
            default: return "No photo: \(error.message)"
            }
        }
    }
}
