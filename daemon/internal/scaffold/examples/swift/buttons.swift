// A list to choose from. The glasses move the focus and scroll; the app learns the choice from the id of its node.
import Foundation

@main
struct Menu {
    static let dishes = ["Soup", "Salad", "Pasta", "Cake"]

    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Menu", version: "1.0"))
        var screen = menu(nil)
        try await glasses.show(screen)
        for try await event in glasses.events {
            if event.type == "device" && glasses.device["panel"] is JSONObject { // another model, whose panel is clear
                try await glasses.show(screen)
            }
            guard event.type == "input", let kind = event.payload["kind"] as? String else { continue }
            if kind == "back" {
                try await glasses.clear()
            } else if kind == "select" || kind == "tap", let target = event.payload["target"] as? String {
                screen = menu(target)
                try await glasses.show(screen)
            }
        }
    }

    static func menu(_ chosen: String?) -> JSONObject {
        let entries: [JSONObject] = dishes.map { ["type": "button", "id": $0, "text": $0] }
        let children: [JSONObject] = [
            ["type": "text", "text": chosen.map { "You chose \($0)" } ?? "Choose a dish", "style": "title"],
            ["type": "list", "gap": 4, "grow": 1, "overflow": "scroll", "children": entries],
        ]
        return ["type": "column", "gap": 8, "padding": 16, "children": children]
    }
}
