// Answers what the wearer asks. A language model answers and calls the app's tool; the answer is shown and spoken;
// back stops it.
import Foundation

actor Shopping {
    let glasses: Glasses
    var items: [String] = []

    init(_ glasses: Glasses) {
        self.glasses = glasses
    }

    func add(_ item: String) -> JSONObject {
        items.append(item)
        return ["items": items]
    }

    func attempt<T>(_ command: () async throws -> T) async throws -> T? {
        do {
            return try await command()
        } catch let error as GlassesError where error.code != "closed" {
            print("refused (\(error.code)): \(error.message) \(error.fixHint)") // folded, no speaker, no credit, ...
            return nil
        }
    }

    func draw(_ question: String, _ answer: String) async throws {
        let children: [JSONObject] = [
            ["type": "text", "style": "caption", "text": question],
            ["type": "column", "grow": 1, "overflow": "paginate", "children": [["type": "text", "text": answer]]],
        ]
        let tree: JSONObject = ["type": "column", "padding": 16, "gap": 8, "children": children]
        _ = try await attempt { try await glasses.show(tree) }
    }

    func ask(_ question: String) async throws -> String {
        let properties: JSONObject = ["item": ["type": "string"]]
        let parameters: JSONObject = ["type": "object", "properties": properties, "required": ["item"]]
        let about = "Puts an item on the shopping list and returns the whole list."
        let tool = AssistantTool(name: "add_item", description: about, parameters: parameters) { given in
            await self.add(given["item"] as? String ?? "")
        }
        let system = "Answer in one short sentence, which is spoken."
        return try await glasses.ask(question, system: system, tools: [tool]).text
    }

    func handle(_ question: String) async throws {
        try await draw(question, "…")
        let answer = try await attempt { try await ask(question) } ?? ""
        let text = answer.isEmpty ? "I cannot answer now." : answer
        try await draw(question, text)
        _ = try await attempt { try await glasses.say(String(text.prefix(2000))) }
    }

    func listen() async throws {
        _ = try await attempt { try await glasses.startTranscription() }
    }
}

@main
struct App {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Shopping", version: "1.0"))
        let app = Shopping(glasses)
        glasses.on("input") { event in
            if event.payload["kind"] as? String == "back" { glasses.stopAsking() }
        }
        try await app.draw("Shopping", "Ask me.")
        try await app.listen()
        for try await event in glasses.events {
            guard event.type == "transcript", event.payload["final"] as? Bool == true else { continue }
            try await app.handle(event.payload["text"] as? String ?? "")
        }
    }
}
