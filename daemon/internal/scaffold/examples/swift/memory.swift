// Remembers the wearer, who is asked first and can have it deleted. A language model answers and, in a later session,
// knows what the wearer has told.
import Foundation

let question = "May I remember what you tell me, so that I know it the next time? You can have it deleted at any time."

actor Companion {
    let glasses: Glasses
    var remember = false
    var shown = [""]
    var change: [String] { [remember ? "Forget me" : "Remember me"] } // the wearer may decide otherwise at any time

    init(_ glasses: Glasses) {
        self.glasses = glasses
    }

    func attempt<T>(_ command: () async throws -> T) async throws -> T? {
        do {
            return try await command()
        } catch let error as GlassesError where error.code != "closed" {
            print("refused (\(error.code)): \(error.message) \(error.fixHint)") // folded, no gateway, no credit, ...
            return nil
        }
    }

    func draw(_ text: String, _ buttons: [String] = []) async throws {
        shown = [text] + buttons
        let content: JSONObject = [
            "type": "column", "grow": 1, "overflow": "paginate", "children": [["type": "text", "text": text]],
        ]
        let choices = buttons.map { text -> JSONObject in
            ["type": "button", "id": String(text.prefix { $0 != " " }), "text": text]
        }
        let row: JSONObject = ["type": "row", "gap": 8, "children": choices]
        let tree: JSONObject = ["type": "column", "padding": 4, "gap": 4, "children": [content, row]]
        _ = try await attempt { try await glasses.show(tree) }
    }

    func begin() async throws {
        let profile = try await attempt { try await glasses.memory() } ?? ""
        remember = !profile.isEmpty // a profile exists only if the wearer agreed
        try await draw(remember ? "Welcome back." : question, remember ? ["Forget me"] : ["Yes", "No"])
        _ = try await attempt { try await glasses.startTranscription() }
    }

    func hear(_ said: String) async throws {
        // Some glasses can select only the first button, so the wearer may also say yes or no.
        let word = said.lowercased().prefix { $0.isLetter }
        if shown[0] == question && (word == "yes" || word == "no") {
            return try await choose(word == "yes" ? "Yes" : "No")
        }
        let isRemembering = remember
        let answer = try await attempt {
            try await glasses.ask(said, system: "Answer in one short sentence.", remember: isRemembering).text
        } ?? ""
        try await draw(answer.isEmpty ? "I cannot answer now." : answer, change)
    }

    func redraw() async throws {
        try await draw(shown[0], Array(shown.dropFirst()))
        _ = try await attempt { try await glasses.startTranscription() }
    }

    func choose(_ target: String) async throws {
        if target == "Remember" { return try await draw(question, ["Yes", "No"]) }
        if target == "Forget" {
            let isDeleted = try await attempt { () -> Bool in try await glasses.forget(); return true } ?? false
            if !isDeleted { return try await draw("It is not deleted.", ["Forget me"]) }
        }
        remember = target == "Yes"
        try await draw(remember ? "Tell me about yourself." : "I remember nothing.", change)
    }
}

@main
struct App {
    static func main() async throws {
        let glasses = try await Glasses.connect(GlassesSettings(name: "Companion", version: "1.0"))
        let app = Companion(glasses)
        try await app.begin()
        for try await event in glasses.events {
            if event.type == "transcript", event.payload["final"] as? Bool == true {
                try await app.hear(event.payload["text"] as? String ?? "")
            } else if event.type == "input", let target = event.payload["target"] as? String {
                try await app.choose(target)
            } else if event.type == "device" { // other glasses begin with a clear display
                try await app.redraw()
            }
        }
    }
}
