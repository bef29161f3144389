// A voice assistant with two tools, which the wearer can interrupt. It shows what was heard and said. A tap begins a
// conversation, back ends it.
import Foundation

actor Kitchen {
    let glasses: Glasses
    var items: [String] = []
    var heard = ""

    init(_ glasses: Glasses) {
        self.glasses = glasses
    }

    func add(_ item: String) -> JSONObject {
        items.append(item)
        return ["items": items]
    }

    func startTimer(_ minutes: Int) throws -> JSONObject {
        guard (1...180).contains(minutes) else { return ["error": "minutes must be 1 to 180"] }
        _ = try glasses.after(minutes * 60_000) { try await self.draw("Timer", "Time is up.") }
        return ["started": true]
    }

    nonisolated func parameters(_ name: String, _ type: String) -> JSONObject {
        let properties: JSONObject = [name: ["type": type]]
        return ["type": "object", "properties": properties, "required": [name]]
    }

    nonisolated var tools: [AssistantTool] {
        let about = "Puts an item on the shopping list and returns the whole list."
        let item = parameters("item", "string")
        let addItem = AssistantTool(name: "add_item", description: about, parameters: item) { given in
            await self.add(given["item"] as? String ?? "")
        }
        let timer = "Starts a kitchen timer of 1 to 180 minutes."
        let minutes = parameters("minutes", "integer")
        let start = AssistantTool(name: "start_timer", description: timer, parameters: minutes) { given in
            try await self.startTimer(given["minutes"] as? Int ?? 0)
        }
        return [addItem, start]
    }

    func attempt<T>(_ command: () async throws -> T) async throws -> T? {
        do {
            return try await command()
        } catch let error as GlassesError where error.code != "closed" {
            print("refused (\(error.code)): \(error.message) \(error.fixHint)") // folded, no gateway, no credit, ...
            return nil
        }
    }

    func draw(_ caption: String, _ said: String) async throws {
        heard = caption
        let children: [JSONObject] = [
            ["type": "text", "style": "caption", "text": caption],
            ["type": "column", "grow": 1, "overflow": "paginate", "children": [["type": "text", "text": said]]],
        ]
        let tree: JSONObject = ["type": "column", "padding": 16, "gap": 8, "children": children]
        _ = try await attempt { try await glasses.show(tree) }
    }

    func talk() async throws {
        let glasses = self.glasses
        let off = glasses.on("input") { event in
            if event.payload["kind"] as? String == "back" { glasses.stopConversing() }
        }
        try await draw("Kitchen", "I am listening.")
        let end = try await attempt {
            try await glasses.converse(
                instructions: "You help in the kitchen. Answer in one or two short sentences.", tools: tools,
                onHeard: { text in try await self.draw(text, "…") },
                onSaid: { text in try await self.draw(self.heard, text) },
                onError: { _ in try await self.draw(self.heard, "I cannot answer that now.") }
            )
        }
        off()
        try await draw("Kitchen", end?.reason == "stopped" ? "Tap to talk." : "I cannot talk now. Tap to try again.")
    }
}

@main
struct App {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Kitchen", version: "1.0"))
        let app = Kitchen(glasses)
        try await app.draw("Kitchen", "Tap to talk.")
        for try await event in glasses.events {
            guard event.type == "input", let kind = event.payload["kind"] as? String else { continue }
            if kind == "tap" || kind == "select" { try await app.talk() }
        }
    }
}
