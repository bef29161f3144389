
//: if assistant
/// How a conversation ended. reason is stopped, or the code of what ended it: no_credit, session_limit, ...; mode is
/// realtime, or text if the session has no realtime model.
public struct ConversationEnd: Sendable {
    public let reason: String
    public let mode: String
}

/// An answer that is being spoken, or waits for the one before it.
final class AssistantUtterance: @unchecked Sendable {
    var item: String
    var playback = "" // the id of its playback.start
    var waiting: [Data] = [] // sound that was not sent yet
    var ahead = 0 // ms that were sent and may not have been played
    var stopPacing: (@Sendable () -> Void)?
    var complete = false
    var ended = false // playback.end was sent

    init(_ item: String) {
        self.item = item
    }
}

/// Refuses redirects: the token is sent nowhere else.
final class AssistantRedirects: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(_ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void) {
        completionHandler(nil)
    }
}

/// One call of converse. Its run handles one input after the other; other tasks and threads only put inputs.
final class AssistantConversation: @unchecked Sendable {
    private static let voiceRate = 16_000 // samples a second
    private static let chunkBytes = voiceRate / 10 * 2 // 100 ms
    // At most 30 s are sent ahead of what was played: ahead is too low by up to one period if the sound had a gap.
    private static let maxAhead = 25_000
    private static let pacingPeriod = 5000
    private static let reopenAfter = 1.0 // seconds until a lost conversation is opened again
    private static let maxAttempts = 30 // to open it without success
    private static let mayFail = "may_fail" // the id of events that may fail, because the answer may have ended
    /// The reasons of close codes that another attempt would not change.
    private static let finalReasons = [
        4400: "refused", 4401: "closed", 4402: "no_credit", 4408: "session_limit", 4410: "closed",
    ]
    private static let finalRefusals = ["attestation_failed", "invalid_key", "no_storage"] // of an attestation
    private static let finalCodes = ["no_credit", "cap_reached", "credit_locked", "invalid_key"] // of ask

    private enum Input {
        case gateway(JSONObject)
        case lost(code: Int, why: String)
        case glasses(GlassesEvent)
        case transcript(JSONObject, number: Int)
        case refused(AssistantUtterance, code: String)
        case pace(AssistantUtterance)
        case failed(Error)
    }

    private let glasses: Glasses
    private let instructions: String
    private let tools: [AssistantTool]
    private let user: String // to remember, or ""
    private let onHeard: @Sendable (String) async throws -> Void
    private let onSaid: @Sendable (String) async throws -> Void
    private let onError: @Sendable (GlassesError) async throws -> Void
    private let session = URLSession(configuration: .ephemeral, delegate: AssistantRedirects(), delegateQueue: nil)
    // Only run uses what follows.
    private var spoken: [AssistantUtterance] = []
    private var silenced: Set<String> = [] // items whose further sound is dropped
    private var calls: [AssistantReply.ToolCall] = [] // of the response in progress
    private var said = ""
    private var messages: [JSONObject] = [] // in the mode text
    // The lock of glasses guards what follows.
    private var isRealtime: Bool? // nil until that is known
    private var task: URLSessionWebSocketTask?
    private var inputs: [Input] = []
    private var waiter: CheckedContinuation<Void, Never>? // run, if it waits for an input
    private var isBusy = false // whether run counts as work of glasses
    private var isAnswering = false // whether the gateway owes an answer
    private var isBehind = false // whether the gateway was sent something that it may not have reacted to
    private var updates: [() -> Void] = [] // what to do when it answers each session.update
    private var attempts = 0
    private var token = "" // of task
    private var refusedToken: String? // by the gateway
    private var transcripts = 0
    private var reason = ""
    private var isOver = false

    init(_ glasses: Glasses, _ instructions: String, _ tools: [AssistantTool], _ user: String,
         _ onHeard: @escaping @Sendable (String) async throws -> Void,
         _ onSaid: @escaping @Sendable (String) async throws -> Void,
         _ onError: @escaping @Sendable (GlassesError) async throws -> Void) {
        self.glasses = glasses
        self.instructions = instructions
        self.tools = tools
        self.user = user
        self.onHeard = onHeard
        self.onSaid = onSaid
        self.onError = onError
    }

    func run() async throws -> ConversationEnd {
        defer { close() }
        glasses.locked { wake() }
        if !JSONSerialization.isValidJSONObject(tools.map { $0.described }) {
            throw GlassesError(code: "bad_payload", message: "the tools cannot be encoded as JSON")
        }
        let found = try await hasRealtime()
        glasses.locked { isRealtime = found }
        do {
            if found { await open() }
            await listen()
            while let input = await next() { try await handle(input) }
        } catch {
            if glasses.locked({ glasses.ended == nil }) {
                await leave()
                throw error
            }
        }
        await leave()
        let why = glasses.locked { reason }
        return ConversationEnd(reason: why, mode: found ? "realtime" : "text")
    }

    /// Closes the connection, and stops listening and the sound of an answer.
    private func leave() async {
        let first = spoken.first
        spoken = []
        let open = glasses.locked { task }
        forget()
        open?.cancel(with: .normalClosure, reason: nil)
        first?.stopPacing?()
        let isRealtime = glasses.locked { self.isRealtime == true }
        await attempt(isRealtime ? "audio.stop" : "transcription.stop")
        if let first = first, !first.playback.isEmpty { await attempt("playback.flush") }
    }

    private func close() {
        glasses.locked {
            isOver = true
            rest()
        }
        session.finishTasksAndInvalidate()
    }

    func end(_ why: String) {
        glasses.locked {
            if isOver { return }
            if reason.isEmpty { reason = why }
            if isRealtime == false { glasses.stopAsking() }
            wake()
        }
    }

    /// Takes an event of the glasses; the lock is held. Reports whether the event is only for the conversation.
    func take(_ event: GlassesEvent) -> Bool {
        guard let isRealtime = isRealtime else { return false }
        switch event.type {
        case "audio.chunk":
            if isRealtime { hear(event) }
        case "playback":
            if !isRealtime { return false }
            put(.glasses(event))
            return true
        case "transcript":
            if isRealtime { return false }
            glasses.stopAsking()
            transcripts += 1
            put(.transcript(event.payload, number: transcripts))
            return true
        case "hinge", "call", "link", "permission", "disabled", "device", "connection":
            put(.glasses(event))
        default:
            break
        }
        return false
    }

    /// Asks the gateway to answer once it has handled everything that it was sent, which counts as work until then; the
    /// lock is held. Reports whether that is necessary.
    func catchUp() -> Bool {
        if !isBehind || task == nil { return false }
        glasses.working += 1
        update([:]) { self.glasses.done() }
        isBehind = false
        return true
    }

    private func put(_ input: Input) {
        glasses.locked {
            if isOver { return }
            inputs.append(input)
            wake()
        }
    }

    /// The next input; nil at the end.
    private func next() async -> Input? {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            glasses.locked {
                if inputs.isEmpty && reason.isEmpty {
                    waiter = continuation
                    rest()
                } else {
                    continuation.resume()
                }
            }
        }
        return glasses.locked { reason.isEmpty ? inputs.removeFirst() : nil }
    }

    private func wake() {
        if !isBusy { glasses.working += 1 }
        isBusy = true
        waiter?.resume()
        waiter = nil
    }

    private func rest() {
        if isBusy { glasses.done() }
        isBusy = false
    }

    private func owe(_ isOwed: Bool) {
        glasses.locked {
            if isAnswering == isOwed { return }
            isAnswering = isOwed
            glasses.callCount += isOwed ? 1 : -1
        }
    }

    @discardableResult
    private func attempt(_ type: String, _ fields: [String: Any?] = [:]) async -> JSONObject {
        let answer = try? await glasses.command(type, fields)
        return answer?.result ?? [:] // a later state may allow it
    }

    private func listen() async {
        if glasses.locked({ isRealtime == true }) {
            await attempt("audio.start", ["sampleRate": AssistantConversation.voiceRate])
        } else {
            await attempt("transcription.start")
        }
    }

    /// A request for a realtime session; nil if there is no gateway.
    private func realtimeRequest(_ gateway: JSONObject, scheme: String) -> URLRequest? {
        let query = "model=assistant&rate=\(AssistantConversation.voiceRate)"
        guard let address = gateway["url"] as? String, let token = gateway["token"] as? String,
              let url = URL(string: "\(scheme)\(address.dropFirst(4))/realtime?\(query)") else { return nil }
        var request = URLRequest(url: url)
        request.setValue("Bearer " + token, forHTTPHeaderField: "Authorization")
        if !user.isEmpty {
            request.setValue(user, forHTTPHeaderField: "X-Service-User")
            request.setValue("wearer-agreed", forHTTPHeaderField: "X-Service-Memory")
        }
        return request
    }

    private func hasRealtime() async throws -> Bool {
        let to = try await glasses.authorised()
        var status = try await realtimeStatus(to)
        if status == 401 {
            let next = try await glasses.authorised(refused: to["token"] as? String)
            if next["token"] as? String != to["token"] as? String { status = try await realtimeStatus(next) }
        }
        return status == 426 // it asks for a WebSocket
    }

    private func realtimeStatus(_ gateway: JSONObject) async throws -> Int {
        guard var request = realtimeRequest(gateway, scheme: "http") else {
            throw GlassesError.assistant("no_gateway", "this session has no AI gateway")
        }
        request.timeoutInterval = 10
        let call = AssistantCall(request)
        defer { call.stop() }
        var parts = call.parts.makeAsyncIterator()
        if let part = try? await parts.next(), case .status(let status, _, _) = part { return status }
        throw GlassesError.assistant("gateway_unreachable", "the AI gateway cannot be reached")
    }

    /// Opens the conversation; why is the code of what the last attempt failed with.
    private func open(_ why: String = "gateway_unreachable") async {
        let (attempt, refused): (Int, String?) = glasses.locked {
            attempts += 1
            return (attempts, refusedToken)
        }
        if attempt > AssistantConversation.maxAttempts { return end(why) }
        let to: JSONObject
        do {
            to = try await glasses.authorised(refused: refused)
        } catch {
            let code = (error as? GlassesError)?.code ?? "gateway_unreachable"
            if AssistantConversation.finalRefusals.contains(code) { return end(code) }
            return openLater(URLSessionWebSocketTask.CloseCode.abnormalClosure.rawValue, code)
        }
        guard let request = realtimeRequest(to, scheme: "ws") else { return end("no_gateway") }
        owe(true) // virtual time waits for the first session.updated
        let task = session.webSocketTask(with: request)
        task.maximumMessageSize = 4 << 20
        glasses.locked {
            self.task = task
            token = to["token"] as? String ?? ""
        }
        task.resume()
        configure()
        receive(task)
    }

    private func receive(_ task: URLSessionWebSocketTask) {
        task.receive { [weak self] result in
            guard let self = self else { return }
            switch result {
            case .success(let message):
                self.received(message)
                self.receive(task)
            case .failure:
                if (task.response as? HTTPURLResponse)?.statusCode == 401 {
                    self.glasses.locked { self.refusedToken = self.token }
                }
                self.openLater(task.closeCode.rawValue)
            }
        }
    }

    /// Reports a lost connection, after a pause if another attempt may succeed.
    private func openLater(_ code: Int, _ why: String = "gateway_unreachable") {
        let isFinal = AssistantConversation.finalReasons[code] != nil
        let pause = isFinal ? 0 : AssistantConversation.reopenAfter
        DispatchQueue.global().asyncAfter(deadline: .now() + pause) { self.put(.lost(code: code, why: why)) }
    }

    private func received(_ message: URLSessionWebSocketTask.Message) {
        guard case .string(let text) = message,
              let event = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? JSONObject else { return }
        let type = event["type"] as? String
        let isRefused = type == "error" && (event["error"] as? JSONObject)?["event_id"] as? String == "update"
        if type != "session.updated" && !isRefused { return put(.gateway(event)) }
        glasses.locked {
            attempts = 0
            if !updates.isEmpty { updates.removeFirst()() }
        }
    }

    /// Drops what belongs to a connection that was lost.
    private func forget() {
        owe(false)
        glasses.locked {
            task = nil
            isBehind = false
            let all = updates
            updates = []
            for then in all { then() }
        }
        calls = []
        silenced = []
        for utterance in spoken {
            utterance.item = "" // the next connection does not know it
            if !utterance.complete { complete(utterance) }
        }
    }

    private func send(_ event: JSONObject) {
        guard let data = try? JSONSerialization.data(withJSONObject: event) else { return }
        glasses.locked {
            guard let task = task else { return }
            task.send(.string(String(decoding: data, as: UTF8.self))) { _ in } // receive notices
            isBehind = true
        }
    }

    /// Sends an event unless the connection has changed: another one does not know what it is about.
    private func send(_ event: JSONObject, to current: URLSessionWebSocketTask?) {
        if glasses.locked({ task === current }) { send(event) }
    }

    private func update(_ session: JSONObject, then: @escaping () -> Void) {
        var typed = session
        typed["type"] = "realtime"
        glasses.locked {
            updates.append(then)
            send(["type": "session.update", "event_id": "update", "session": typed])
        }
    }

    private func configure() {
        let functions: [JSONObject] = tools.map { tool -> JSONObject in
            ["type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters]
        }
        update(["instructions": instructions, "tools": functions]) { self.owe(false) }
        let input: JSONObject = ["transcription": JSONObject()]
        update(["audio": ["input": input]]) {} // by itself: a gateway may refuse it
    }

    private func hear(_ event: GlassesEvent) {
        guard let sound = event.data else { return }
        var append: JSONObject = ["type": "input_audio_buffer.append", "audio": sound.base64EncodedString()]
        if let transcript = event.payload["transcript"] as? String { append["transcript"] = transcript }
        send(append)
    }

    private func handle(_ input: Input) async throws {
        switch input {
        case .gateway(let event):
            try await handle(event)
        case .lost(let code, let why):
            forget()
            if let reason = AssistantConversation.finalReasons[code] {
                end(reason)
            } else {
                await open(why)
            }
        case .glasses(let event):
            if event.type == "playback" { return played(event.payload) }
            if event.type == "link" { lose(event.payload) }
            await listen()
        case .transcript(let transcript, let number):
            try await answer(transcript, number)
        case .refused(let utterance, let code):
            refuse(utterance, code)
        case .pace(let utterance):
            pace(utterance)
        case .failed(let error):
            throw error
        }
    }

    private func handle(_ event: JSONObject) async throws {
        switch event["type"] as? String ?? "" {
        case "error":
            try await refused(event["error"] as? JSONObject ?? [:])
        case "input_audio_buffer.speech_started":
            await interrupt()
        case "conversation.item.input_audio_transcription.completed":
            try await onHeard(event["transcript"] as? String ?? "")
        case "response.created":
            owe(true)
            said = ""
        case "response.output_audio_transcript.delta":
            said += event["delta"] as? String ?? ""
            try await onSaid(said)
        case "response.output_audio.delta":
            let sound = Data(base64Encoded: event["delta"] as? String ?? "") ?? Data()
            speak(event["item_id"] as? String ?? "", sound)
        case "response.output_audio.done":
            let item = event["item_id"] as? String ?? ""
            if let utterance = spoken.first(where: { $0.item == item }) { complete(utterance) }
        case "response.function_call_arguments.done":
            calls.append(AssistantReply.ToolCall(
                id: event["call_id"] as? String ?? "", name: event["name"] as? String ?? "",
                arguments: event["arguments"] as? String ?? ""))
        case "response.done":
            let response = event["response"] as? JSONObject ?? [:]
            let status = response["status"] as? String ?? ""
            respond(status)
            if status == "failed" {
                let details = response["status_details"] as? JSONObject
                let code = (details?["error"] as? JSONObject)?["code"] as? String ?? "provider_error"
                try await onError(GlassesError.assistant(code, "the model failed to answer"))
            }
        default:
            break
        }
    }

    private func refused(_ error: JSONObject) async throws {
        let code = error["code"] as? String ?? "provider_error"
        if error["event_id"] as? String == AssistantConversation.mayFail { return }
        if code == "conversation_already_has_active_response" { return }
        owe(false)
        try await onError(GlassesError.assistant(code, error["message"] as? String ?? ""))
    }

    /// Runs the tools that a response called, and asks for the next response. Meanwhile the wearer may interrupt.
    private func respond(_ status: String) {
        owe(false)
        let all = calls
        calls = []
        if status != "completed" || all.isEmpty { return }
        let current: URLSessionWebSocketTask? = glasses.locked {
            glasses.working += 1
            return task
        }
        Task {
            do {
                for call in all {
                    let output = try await self.glasses.use(call, self.tools)["content"] ?? ""
                    let item: JSONObject = ["type": "function_call_output", "call_id": call.id, "output": output]
                    self.send(["type": "conversation.item.create", "item": item], to: current)
                }
                self.send(["type": "response.create"], to: current)
            } catch {
                self.put(.failed(error))
            }
            self.glasses.done()
        }
    }

    private func speak(_ item: String, _ sound: Data) {
        if silenced.contains(item) { return } // the rest of what was stopped or refused
        let utterance: AssistantUtterance
        if let known = spoken.first(where: { $0.item == item }) {
            utterance = known
        } else {
            utterance = AssistantUtterance(item)
            spoken.append(utterance)
        }
        for at in stride(from: 0, to: sound.count, by: AssistantConversation.chunkBytes) {
            let end = min(at + AssistantConversation.chunkBytes, sound.count)
            utterance.waiting.append(sound.subdata(in: at..<end))
        }
        play()
    }

    /// Sends the sound of the first answer; the others wait until it was played.
    private func play() {
        guard let first = spoken.first else { return }
        if first.playback.isEmpty {
            let rate = AssistantConversation.voiceRate
            let id = try? glasses.send("playback.start", ["sampleRate": rate]) { [weak self] code in
                self?.put(.refused(first, code: code))
            }
            guard let id = id else { return } // the session is over
            first.playback = id
            first.stopPacing = try? glasses.every(AssistantConversation.pacingPeriod) { [weak self] in
                self?.put(.pace(first))
            }
        }
        while first.ahead < AssistantConversation.maxAhead && !first.waiting.isEmpty {
            let chunk = first.waiting.removeFirst()
            glasses.way.sendBytes("playback.chunk", ["playback": first.playback], chunk)
            first.ahead += chunk.count * 1000 / (2 * AssistantConversation.voiceRate)
        }
        if first.complete && first.waiting.isEmpty { finish(first) }
    }

    /// Sends more sound after a period, in which the glasses have played as much or all that they had.
    private func pace(_ utterance: AssistantUtterance) {
        utterance.ahead = max(0, utterance.ahead - AssistantConversation.pacingPeriod)
        if utterance === spoken.first { play() }
    }

    private func complete(_ utterance: AssistantUtterance) {
        utterance.complete = true
        if utterance === spoken.first && !utterance.playback.isEmpty { play() }
    }

    private func finish(_ utterance: AssistantUtterance) {
        if utterance.ended { return }
        utterance.ended = true
        utterance.stopPacing?()
        _ = try? glasses.send("playback.end", [:]) // it fails only if the session is over
    }

    /// Drops an answer that the glasses did not begin to play. Without a speaker, the app may show the words.
    private func refuse(_ utterance: AssistantUtterance, _ code: String) {
        if code != "unsupported" { return stop(utterance, 0) }
        silenced.insert(utterance.item)
        goOn(utterance)
    }

    /// Drops the rest of an answer and tells the model how much of it was heard, if that is known.
    private func stop(_ utterance: AssistantUtterance, _ playedMs: Int?) {
        if utterance !== spoken.first { return }
        // Without this, the model would go on with the answer.
        if !utterance.complete { send(["type": "response.cancel", "event_id": AssistantConversation.mayFail]) }
        silenced.insert(utterance.item)
        if let playedMs = playedMs { cut(utterance, playedMs) }
        goOn(utterance)
    }

    /// Drops the answer that glasses were playing when they were detached, for which no event arrives.
    private func lose(_ link: JSONObject) {
        guard link["state"] as? String == "disconnected", let first = spoken.first else { return }
        if !first.playback.isEmpty { stop(first, nil) }
    }

    /// Goes on after an answer that was played or dropped.
    private func goOn(_ utterance: AssistantUtterance) {
        if utterance !== spoken.first { return }
        spoken.removeFirst()
        utterance.stopPacing?()
        play()
    }

    private func played(_ report: JSONObject) {
        guard let first = spoken.first, report["id"] as? String == first.playback else { return }
        let state = report["state"] as? String
        if state == "started" { return }
        if state == "stopped" && report["reason"] is String {
            stop(first, report["playedMs"] as? Int ?? 0)
        } else {
            goOn(first)
        }
    }

    /// Stops the sound and tells the model how much of it was heard.
    private func interrupt() async {
        let all = spoken
        spoken = []
        guard let first = all.first, !first.playback.isEmpty else { return }
        first.stopPacing?()
        for utterance in all { silenced.insert(utterance.item) }
        let result = await attempt("playback.flush")
        cut(first, result["playedMs"] as? Int ?? 0)
        for other in all.dropFirst() { cut(other, 0) }
    }

    /// Truncates an answer to what was heard, or deletes it if that is nothing.
    private func cut(_ utterance: AssistantUtterance, _ playedMs: Int) {
        let item = utterance.item
        if item.isEmpty { return }
        if playedMs == 0 {
            send(["type": "conversation.item.delete", "event_id": AssistantConversation.mayFail, "item_id": item])
        } else {
            send(["type": "conversation.item.truncate", "event_id": AssistantConversation.mayFail, "item_id": item,
                  "content_index": 0, "audio_end_ms": playedMs])
        }
    }

    /// Answers a transcript with ask and say, unless the wearer has spoken again.
    private func answer(_ transcript: JSONObject, _ number: Int) async throws {
        await attempt("speech.stop")
        if transcript["final"] as? Bool != true || glasses.locked({ number != transcripts }) { return }
        let text = transcript["text"] as? String ?? ""
        try await onHeard(text)
        if glasses.locked({ number != transcripts || !reason.isEmpty }) { return } // the wearer has spoken again
        do {
            let question: JSONObject = ["role": "user", "content": text]
            let system = instructions.isEmpty ? nil : instructions
            let answer = try await glasses.ask(
                conversation: messages + [question], system: system, tools: tools, remember: !user.isEmpty,
                onText: onSaid)
            messages = answer.messages
            if glasses.locked({ !reason.isEmpty }) { return }
            await attempt("speech.say", ["text": String(answer.text.prefix(2000))])
        } catch let error as GlassesError {
            if glasses.locked({ glasses.ended != nil || !reason.isEmpty }) { return }
            if error.code != "cancelled" { try await onError(error) }
            if AssistantConversation.finalCodes.contains(error.code) { end(error.code) }
        }
    }
}
//: end
