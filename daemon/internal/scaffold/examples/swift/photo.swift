// Takes a photo when the capture button is pressed, and says why if it cannot.
import Foundation

@main
struct Camera {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Camera", version: "1.0"))
        var text = "Press the capture button"
        try await glasses.show(["type": "text", "text": text])
        for try await event in glasses.events {
            if event.type == "input" && event.payload["kind"] as? String == "capture" {
                text = try await take(glasses)
                try await glasses.show(["type": "text", "text": text])
            } else if event.type == "device" && glasses.device["panel"] is JSONObject { // another model's panel is clear
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
