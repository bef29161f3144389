/// The result of a command: its id, the payload of its result, and the bytes of its media.
public struct GlassesAnswer: @unchecked Sendable {
    public let id: String
    public let result: JSONObject
    public let data: Data?
}

/// All events without a handler, one after the other, until the session is closed.
public struct GlassesEvents: AsyncSequence {
    public typealias Element = GlassesEvent
    let glasses: Glasses

    public struct AsyncIterator: AsyncIteratorProtocol {
        let glasses: Glasses

        public mutating func next() async throws -> GlassesEvent? { try await glasses.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(glasses: glasses) }
}

/// A timer of after or every: its clock.sleep is in progress, or it waits for glasses. Durations are in ms.
final class GlassesTimer: @unchecked Sendable {
    let task: @Sendable () async throws -> Void
    let period: Int // 0 for a single call
    var left: Int // to sleep after the current clock.sleep
    var id = "" // of its clock.sleep
    var asked = 0 // duration of that sleep
    var due: Int? // when that sleep ends, on the session's clock
    var running = false

    init(_ task: @escaping @Sendable () async throws -> Void, left: Int, period: Int) {
        self.task = task
        self.left = left
        self.period = period
    }
}

/// Whether the time of one next(timeoutMs:) has passed; guarded by the lock of Glasses.
final class GlassesTimeout: @unchecked Sendable {
    var hasPassed = false
}

/// One attached session. Take events with `for try await event in glasses.events`, one after the other, or with
/// on(_:handler:). Handlers and timers run also while the program waits for a command. Every command throws a
/// GlassesError when the glasses refuse it.
public final class Glasses: @unchecked Sendable {
    private static let maxQueue = 1000 // events not taken yet; the oldest are dropped first
    private static let maxSeen = 500 // ids of received events
    private static let longestSleep = 600_000 // ms of one clock.sleep

    private let lock = NSRecursiveLock() // guards what follows
    fileprivate var way: GlassesLink!
    private var welcome: CheckedContinuation<Void, Error>?
    private var described: JSONObject = [:]
    private var stateAtWelcome: JSONObject = [:]
    private var waiting: [String: CheckedContinuation<GlassesAnswer, Error>] = [:]
    private var media: [String: Data] = [:]
    private var handlers: [String: [(id: Int, handler: GlassesHandler)]] = [:]
    private var handlerCount = 0
    private var queue: [GlassesEvent] = []
    private var taker: CheckedContinuation<GlassesEvent?, Error>?
    private var takerTimeout: GlassesTimeout? // of taker; nil if it waits without one
    private var timers: [String: GlassesTimer] = [:] // by the id of their clock.sleep
    private var stalled: [GlassesTimer] = [] // until glasses are attached
    private var seen: [String] = []
    fileprivate var ended: GlassesError?
    // Barriers are answered when all work waits for the glasses: handlers and a loop over next() count as work, and
    // each command in progress or wait for the AI gateway cancels out one of them.
    fileprivate var working = 0
    private var looping = false
    private var barriers: [String] = []
    fileprivate var callCount = 0 // to the AI gateway, in progress
    private var gatewayWaits = 0 // those of them that wait for the gateway
    //: if assistant
    fileprivate var gateway: JSONObject = [:] // url and token of the AI gateway, if the session has one
    private var settings = GlassesSettings(name: "")
    private var calls: [AssistantCall] = [] // to the gateway, in progress
    private var proofs: Set<Task<String, Error>> = [] // of asks that wait for their attestation
    private var stops = 0 // how often stopAsking was called
    private var conversation: AssistantConversation?
    private var refusals: [String: (String) -> Void] = [:] // by the id of a command that nobody waits for
    //: end

    /// Attaches to the session and returns once it is welcomed. Errors: not_configured, simulator_refused,
    /// transport_unavailable, refused, not_connected.
    public static func connect(_ settings: GlassesSettings) async throws -> Glasses {
        let glasses = Glasses(try GlassesTarget(settings))
        //: if assistant
        glasses.locked { glasses.settings = settings }
        //: end
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
            glasses.locked { glasses.welcome = continuation }
            glasses.way.open()
        }
        return glasses
    }

    private init(_ target: GlassesTarget) {
        way = GlassesLink(target, receive: { [weak self] in self?.receive($0) }, end: { [weak self] in self?.end($0) })
    }

    /// The glasses as the service describes them: panel, inputs, camera, ...
    public var device: JSONObject { locked { described } }

    /// The state of the glasses when the app attached: battery, worn, hinge, thermal, link, route, call, permissions,
    /// disabled, clock. An event reports each later change.
    public var initialState: JSONObject { locked { stateAtWelcome } }

    /// The connection to the glasses: connected, lossy, lost, disconnected; offline while the service is unreachable;
    /// closed.
    public var link: String { way.state }

    /// Ends the session for this app; pending calls fail with the code closed.
    public func close() {
        way.close(GlassesError(code: "closed", message: "the app closed the connection"))
    }

    //: if display
    /// Replaces the content of the panel with a display tree, e.g. ["type": "text", "text": "Hello"].
    public func show(_ tree: JSONObject) async throws {
        try await command("display.show", ["tree": tree])
    }

    public func clear() async throws {
        try await command("display.clear")
    }

    //: end
    //: if speech
    /// Speaks to the wearer. Returns when the glasses begin, with the id that the speech event will name.
    @discardableResult
    public func say(_ text: String, language: String? = nil) async throws -> String {
        try await command("speech.say", ["text": text, "language": language]).id
    }

    public func stopSaying() async throws {
        try await command("speech.stop")
    }

    //: end
    //: if sound
    /// Plays chime, success, error or tick.
    public func play(_ sound: String) async throws {
        try await command("sound.play", ["sound": sound])
    }

    //: end
    //: if phrases
    /// Announces the phrases that the app understands; replaces the previous list.
    public func announce(_ phrases: [String]) async throws {
        try await command("phrases.announce", ["phrases": phrases])
    }

    //: end
    //: if transcription
    /// What the wearer says arrives as transcript events; handler is short for on("transcript").
    public func startTranscription(language: String? = nil, handler: GlassesHandler? = nil) async throws {
        try await start("transcription.start", ["language": language], "transcript", handler)
    }

    public func stopTranscription() async throws {
        try await stop("transcription.stop", "transcript")
    }

    //: end
    //: if microphone
    /// Sound arrives as audio.chunk events: data is 16-bit little-endian PCM, one channel, 100 ms.
    public func startAudio(sampleRate: Int? = nil, handler: @escaping GlassesHandler) async throws {
        try await start("audio.start", ["sampleRate": sampleRate], "audio.chunk", handler)
    }

    public func stopAudio() async throws {
        try await stop("audio.stop", "audio.chunk")
    }

    //: end
    //: if camera
    /// Takes a photo, a JPEG.
    public func photo(width: Int? = nil) async throws -> GlassesMedia {
        try Glasses.media(await command("camera.photo", ["width": width]))
    }

    /// Records a clip, Motion JPEG; returns when it is complete.
    public func clip(durationMs: Int, fps: Int? = nil, width: Int? = nil) async throws -> GlassesMedia {
        try Glasses.media(await command("camera.video", ["durationMs": durationMs, "fps": fps, "width": width]))
    }

    /// Pictures arrive as video.frame events: data is a JPEG.
    public func startVideo(fps: Int? = nil, width: Int? = nil, handler: @escaping GlassesHandler) async throws {
        try await start("video.start", ["fps": fps, "width": width], "video.frame", handler)
    }

    public func stopVideo() async throws {
        try await stop("video.stop", "video.frame")
    }

    private static func media(_ answer: GlassesAnswer) throws -> GlassesMedia {
        guard let data = answer.data else {
            throw GlassesError(code: "media_lost", message: "the connection broke while the picture was being sent; take it again")
        }
        return GlassesMedia(data: data, described: answer.result["media"] as? JSONObject ?? [:])
    }

    //: end
    //: if motion
    /// Movement arrives as motion events: thousandths of g and of a degree a second.
    public func startMotion(hz: Int? = nil, handler: @escaping GlassesHandler) async throws {
        try await start("motion.start", ["hz": hz], "motion", handler)
    }

    public func stopMotion() async throws {
        try await stop("motion.stop", "motion")
    }

    //: end
    //: if assistant
    /// Asks the model of the session's AI gateway a question, see ask(conversation:).
    public func ask(_ question: String, system: String? = nil, tools: [AssistantTool] = [], remember: Bool = false,
                    onText: @Sendable (String) async throws -> Void = { _ in }) async throws -> AssistantAnswer {
        let conversation: [JSONObject] = [["role": "user", "content": question]]
        return try await ask(
            conversation: conversation, system: system, tools: tools, remember: remember, onText: onText)
    }

    /// Asks the model of the session's AI gateway for the next message of a conversation, which is a list like
    /// AssistantAnswer.messages. onText gets the text of the model's message so far, whenever more of it arrives. When
    /// the model calls a tool, its run is called here, and the model answers again, up to 8 times. Virtual time stands
    /// still while the gateway works. Errors have fixHint, and retryAfterMs if waiting helps: no_gateway, cancelled,
    /// gateway_unreachable, gateway_timeout, answer_broken, bad_answer, too_many_rounds, those of
    /// Attestation.token, and those of the gateway:
    /// no_credit, credit_reserved, credit_locked, cap_reached, request_too_large, model_not_found, not_configured,
    /// provider_busy, ... remember states that the wearer agreed that the service remembers what is said; the model
    /// then knows it later.
    public func ask(conversation: [JSONObject], system: String? = nil, tools: [AssistantTool] = [],
                    remember: Bool = false,
                    onText: @Sendable (String) async throws -> Void = { _ in }) async throws -> AssistantAnswer {
        var messages = conversation
        let before: [JSONObject] = system.map { [["role": "system", "content": $0]] } ?? []
        let user = try remember ? userSecret() : ""
        let began = locked { stops }
        for _ in 0..<AssistantReply.maxRounds {
            var request: JSONObject = ["model": "assistant", "stream": true, "messages": before + messages]
            if !tools.isEmpty { request["tools"] = tools.map { $0.described } }
            let reply = try await self.reply(to: AssistantRequest(body: request, user: user), began, onText)
            messages.append(reply.message)
            if reply.calls.isEmpty { return AssistantAnswer(text: reply.text, messages: messages) }
            for call in reply.calls {
                messages.append(try await use(call, tools))
                try checkStop(began)
            }
        }
        throw GlassesError.assistant(
            "too_many_rounds", "the model still calls tools after \(AssistantReply.maxRounds) answers")
    }

    /// Returns what the service remembers about the user; "" if that is nothing.
    public func memory() async throws -> String {
        let request = AssistantRequest(method: "GET", path: "/memory", user: try userSecret())
        return try await reply(to: request, nil) { _ in }.object["profile"] as? String ?? ""
    }

    /// Deletes what the service remembers about the user.
    public func forget() async throws {
        let request = AssistantRequest(method: "DELETE", path: "/memory", user: try userSecret())
        _ = try await reply(to: request, nil) { _ in }
    }

    private func userSecret() throws -> String {
        let given = locked { settings }
        return try AssistantUser.secret(given.name, given.user)
    }

    /// Ends every ask in progress: it throws the code cancelled.
    public func stopAsking() {
        locked {
            stops += 1
            for call in calls { call.stop() }
            for proof in proofs { proof.cancel() }
        }
    }

    /// Speaks with the wearer until stopConversing: the model hears the microphone and answers with sound, which stops
    /// when the wearer speaks again. Its tools run here, as for ask. onHeard gets what the wearer said, onSaid the text
    /// of the answer so far, and onError why an answer failed. Without a realtime model it uses transcripts, ask and say
    /// instead. Use neither startAudio nor startTranscription meanwhile. It continues by itself after a lost connection,
    /// a phone call or folded glasses, but after a lost connection the model has forgotten what was said. remember and
    /// errors: as for ask.
    public func converse(
        instructions: String = "", tools: [AssistantTool] = [], remember: Bool = false,
        onHeard: @escaping @Sendable (String) async throws -> Void = { _ in },
        onSaid: @escaping @Sendable (String) async throws -> Void = { _ in },
        onError: @escaping @Sendable (GlassesError) async throws -> Void = { error in
            FileHandle.standardError.write(Data("no answer (\(error.code)): \(error.message) \(error.fixHint)\n".utf8))
        }
    ) async throws -> ConversationEnd {
        let user = try remember ? userSecret() : ""
        let (begun, isWork): (AssistantConversation, Bool) = try locked {
            if let ended = ended { throw ended }
            if conversation != nil { throw GlassesError.assistant("busy", "a conversation is running already") }
            let begun = AssistantConversation(self, instructions, tools, user, onHeard, onSaid, onError)
            conversation = begun
            let isWork = working > waiting.count + gatewayWaits // a handler or a loop called this
            if isWork { gatewayWaits += 1 }
            return (begun, isWork)
        }
        defer {
            locked {
                conversation = nil
                if isWork { gatewayWaits -= 1 }
            }
            check()
        }
        return try await begun.run()
    }

    /// Ends the conversation: converse returns with the reason stopped.
    public func stopConversing() {
        let current = locked { conversation }
        current?.end("stopped")
    }

    /// Sends a command without waiting for its result; returns its id. refused gets the code if the glasses refuse it.
    @discardableResult
    fileprivate func send(
        _ type: String, _ payload: JSONObject, refused: @escaping (String) -> Void = { _ in }
    ) throws -> String {
        try locked {
            try way.send(type, payload) { id in refusals[id] = refused }
        }
    }

    private func checkStop(_ began: Int?) throws {
        try locked {
            if let ended = ended { throw ended }
            if let began = began, stops != began { throw GlassesError.assistant("cancelled", "the app stopped asking") }
        }
    }

    /// The answer to a request: the model's message, or an object. A token that expires meanwhile is replaced once.
    private func reply(to request: AssistantRequest, _ began: Int?,
                       _ onText: @Sendable (String) async throws -> Void) async throws -> AssistantReply {
        let to = try await authorised(began)
        do {
            return try await exchange(request, to, began, onText)
        } catch let error as GlassesError {
            if error.code != "invalid_key" { throw error }
            let next = try await authorised(began, refused: to["token"] as? String)
            if next["token"] as? String == to["token"] as? String { throw error }
            return try await exchange(request, next, began, onText)
        }
    }

    /// The url of the gateway and a token for it, or nothing. refused is a token of an attestation that it refused.
    /// began is what stops was when an ask began, which stopAsking ends.
    fileprivate func authorised(_ began: Int? = nil, refused: String? = nil) async throws -> JSONObject {
        let (own, other): (JSONObject, Attestation?) = locked { (gateway, settings.attestation) }
        guard own.isEmpty, let attestation = other else { return own }
        let proof = Task { try await attestation.token(refused: refused) }
        locked {
            if began != nil { proofs.insert(proof) } // stopAsking cancels it
            if began != nil && (stops != began || ended != nil) { proof.cancel() }
            callCount += 1
            gatewayWaits += 1
        }
        check()
        defer {
            locked {
                proofs.remove(proof)
                callCount -= 1
                gatewayWaits -= 1
            }
        }
        do {
            return ["url": attestation.url, "token": try await proof.value]
        } catch {
            try checkStop(began)
            throw error
        }
    }

    private func exchange(_ request: AssistantRequest, _ to: JSONObject, _ began: Int?,
                          _ onText: @Sendable (String) async throws -> Void) async throws -> AssistantReply {
        try checkStop(began)
        let isVirtual = initialState["clock"] as? String == "virtual"
        let call = AssistantCall(try AssistantReply.request(request, to, isVirtual: isVirtual))
        locked {
            if began != nil { calls.append(call) } // stopAsking stops it
            callCount += 1
        }
        defer {
            call.stop()
            locked {
                calls.removeAll { $0 === call }
                callCount -= 1
            }
        }
        var reply = AssistantReply(isObject: request.body == nil)
        var parts = call.parts.makeAsyncIterator()
        do {
            while !reply.isComplete {
                guard let part = try await next(&parts) else { break }
                let texts = try reply.take(part)
                for text in texts {
                    try await onText(text)
                    try checkStop(began)
                }
            }
            try reply.end()
        } catch {
            try checkStop(began)
            throw reply.explained(error)
        }
        return reply
    }

    private func next(
        _ parts: inout AsyncThrowingStream<AssistantCall.Part, Error>.AsyncIterator
    ) async throws -> AssistantCall.Part? {
        locked { gatewayWaits += 1 }
        check()
        defer { locked { gatewayWaits -= 1 } }
        return try await parts.next()
    }

    /// Runs the tool of a call. Mistakes of the model and refusals by the glasses are reported to the model.
    fileprivate func use(_ call: AssistantReply.ToolCall, _ tools: [AssistantTool]) async throws -> JSONObject {
        let text = call.arguments.isEmpty ? "{}" : call.arguments
        var result: Any
        if let tool = tools.first(where: { $0.name == call.name }) {
            if let given = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? JSONObject {
                do {
                    result = try await tool.run(given)
                } catch let error as GlassesError where error.code != "closed" && error.code != "cancelled" {
                    result = ["error": ["code": error.code, "message": error.message]]
                }
            } else {
                result = ["error": "the arguments are not a JSON object"]
            }
        } else {
            result = ["error": "there is no tool with this name"]
        }
        if !(result is String) {
            let data = try JSONSerialization.data(withJSONObject: result, options: [.fragmentsAllowed, .sortedKeys])
            result = String(decoding: data, as: UTF8.self)
        }
        return ["role": "tool", "tool_call_id": call.id, "content": result]
    }

    //: end
    /// Waits on the session's clock, which may be virtual. Use it instead of Task.sleep.
    public func sleep(_ ms: Int) async throws {
        try await command("clock.sleep", ["ms": ms])
    }

    /// Calls task once, after ms on the session's clock. Returns a function that cancels it. An error of task ends the
    /// program.
    @discardableResult
    public func after(_ ms: Int, task: @escaping @Sendable () async throws -> Void) throws -> @Sendable () -> Void {
        try time(ms, least: 0, period: 0, task)
    }

    /// Calls task every ms on the session's clock. A call that is due while task still runs is skipped. Returns a
    /// function that cancels it. An error of task ends the program.
    @discardableResult
    public func every(_ ms: Int, task: @escaping @Sendable () async throws -> Void) throws -> @Sendable () -> Void {
        try time(ms, least: 1, period: ms, task)
    }

    /// Calls handler for each event of a type; its events no longer come out of next(). Returns a function that stops
    /// it. Type "connection" has {state: online | offline}: whether the service is reachable.
    @discardableResult
    public func on(_ type: String, handler: @escaping GlassesHandler) -> @Sendable () -> Void {
        let id: Int = locked {
            handlerCount += 1
            handlers[type, default: []].append((handlerCount, handler))
            return handlerCount
        }
        return { [weak self] in self?.locked { self?.handlers[type]?.removeAll { $0.id == id } } }
    }

    /// The events, to loop over.
    public var events: GlassesEvents { GlassesEvents(glasses: self) }

    /// The next event without a handler; nil when the session is closed.
    public func next() async throws -> GlassesEvent? {
        try await take(until: nil)
    }

    private func take(until timeout: GlassesTimeout?) async throws -> GlassesEvent? {
        rest()
        return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<GlassesEvent?, Error>) in
            locked {
                if !queue.isEmpty {
                    hand(queue.removeFirst(), to: continuation)
                } else if let ended = ended {
                    Glasses.finish(continuation, ended)
                } else if timeout?.hasPassed == true { // before the program got here
                    hand(nil, to: continuation)
                } else {
                    taker = continuation
                    takerTimeout = timeout
                }
            }
        }
    }

    /// The next event without a handler; nil if none came within timeoutMs of the session's clock, or the session is
    /// closed.
    public func next(timeoutMs: Int) async throws -> GlassesEvent? {
        if locked({ !queue.isEmpty || ended != nil }) { return try await next() }
        let timeout = GlassesTimeout()
        let cancel = try after(timeoutMs) { [weak self] in self?.giveUp(timeout) }
        defer { cancel() }
        return try await take(until: timeout)
    }

    private func giveUp(_ timeout: GlassesTimeout) {
        locked {
            timeout.hasPassed = true
            // The program may wait for a later event already, or not yet for this one.
            guard let continuation = taker, takerTimeout === timeout else { return }
            taker = nil
            hand(nil, to: continuation)
        }
    }

    /// Writes an event of the app to the session's log, e.g. log("com.example.score", ["points": 3]).
    public func log(_ type: String, _ payload: JSONObject) throws {
        try way.send(type, payload)
    }

    /// Sends any command of the protocol; the methods above use it. Fields that are nil are omitted.
    @discardableResult
    public func command(_ type: String, _ fields: [String: Any?] = [:]) async throws -> GlassesAnswer {
        let payload = fields.compactMapValues { $0 }
        return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<GlassesAnswer, Error>) in
            do {
                _ = try locked { // before the lock of the link, as everywhere
                    try way.send(type, payload) { id in waiting[id] = continuation }
                }
            } catch {
                continuation.resume(throwing: error)
            }
            check()
        }
    }

    //: if transcription,microphone,camera,motion
    private func start(_ type: String, _ fields: [String: Any?], _ event: String, _ handler: GlassesHandler?) async throws {
        let off = handler.map { on(event, handler: $0) }
        do {
            try await command(type, fields)
        } catch {
            off?()
            throw error
        }
    }

    private func stop(_ type: String, _ event: String) async throws {
        try await command(type)
        locked { handlers[event] = nil }
    }

    //: end
    private func time(_ ms: Int, least: Int, period: Int, _ task: @escaping @Sendable () async throws -> Void) throws -> @Sendable () -> Void {
        if ms < least { throw GlassesError(code: "bad_payload", message: "\(ms) ms is less than \(least)") }
        let timer = GlassesTimer(task, left: ms, period: period)
        try sleep(timer)
        return { [weak self] in self?.cancel(timer) }
    }

    private func sleep(_ timer: GlassesTimer) throws {
        try locked {
            timer.asked = min(timer.left, Glasses.longestSleep)
            try way.send("clock.sleep", ["ms": timer.asked]) { id in
                timer.id = id
                timers[id] = timer
            }
            timer.left -= timer.asked
        }
    }

    private func cancel(_ timer: GlassesTimer) {
        locked {
            stalled.removeAll { $0 === timer }
            if timers.removeValue(forKey: timer.id) == nil || ended != nil { return }
            must { try way.send("clock.cancel", ["id": timer.id]) }
        }
    }

    private func tick(_ timer: GlassesTimer, _ frame: GlassesFrame) {
        if let error = frame.payload["error"] as? JSONObject {
            let code = error["code"] as? String ?? "platform_error"
            if code == "not_connected" || code == "timeout" {
                timer.left += timer.asked // it is not known how much of it has passed
                timer.due = nil
                if code == "not_connected" && link == "disconnected" {
                    stalled.append(timer)
                } else { // also if glasses were attached while the app was away
                    must { try sleep(timer) }
                }
            } else {
                must { throw GlassesError(code: code, message: error["message"] as? String ?? "") }
            }
        } else if timer.left > 0 {
            must { try sleep(timer) }
        } else {
            if timer.period > 0 { sleepAgain(timer, frame.at) }
            if !timer.running { run(timer) }
        }
    }

    /// Sleeps until the next call is due; a late answer does not delay it.
    private func sleepAgain(_ timer: GlassesTimer, _ at: Int) {
        timer.left = timer.due.map { min($0 + timer.period - at, timer.period) } ?? timer.period
        if timer.left <= 0 { timer.left = timer.period } // calls were missed
        timer.due = at + timer.left
        must { try sleep(timer) }
    }

    private func run(_ timer: GlassesTimer) {
        timer.running = true
        working += 1
        Task {
            do {
                try await timer.task()
            } catch {
                self.must { throw error }
            }
            self.locked { timer.running = false }
            self.done()
        }
    }

    private func resume() {
        locked {
            let all = stalled
            stalled = []
            for timer in all { must { try sleep(timer) } }
        }
    }

    /// Ends the program on an error that nobody could catch, unless the session has ended.
    private func must(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            if (error as? GlassesError)?.code != "closed" { fatalError("a timer of the glasses: \(error)") }
        }
    }

    private func receive(_ frame: GlassesFrame) {
        switch frame.type {
        case "welcome":
            let waiter: CheckedContinuation<Void, Error>? = locked {
                described = frame.payload["deviceModel"] as? JSONObject ?? [:]
                stateAtWelcome = frame.payload["glasses"] as? JSONObject ?? [:]
                //: if assistant
                gateway = frame.payload["gateway"] as? JSONObject ?? [:]
                //: end
                defer { welcome = nil }
                return welcome
            }
            waiter?.resume()
            emit(GlassesEvent(type: "connection", id: "", at: frame.at, payload: ["state": "online"], data: nil), queued: false)
            if frame.payload["link"] as? String != "disconnected" { resume() }
        case "result":
            answer(frame)
        case "media":
            locked { if waiting[frame.id] != nil { media[frame.id] = frame.data } }
        case "barrier":
            locked { barriers.append(frame.id) }
            check()
        case "gateway.token": // not an event: it contains a secret
            //: if assistant
            locked { gateway = frame.payload }
            //: end
            break
        case "connection":
            locked { barriers = [] } // the service asks again
            emit(GlassesEvent(type: frame.type, id: "", at: frame.at, payload: frame.payload, data: nil), queued: false)
        default:
            if frame.data == nil && again(frame.id) { return }
            if frame.type == "device" { locked { described = frame.payload["deviceModel"] as? JSONObject ?? described } }
            emit(GlassesEvent(type: frame.type, id: frame.id, at: frame.at, payload: frame.payload, data: frame.data), queued: frame.data == nil)
            if frame.type == "link" && frame.payload["state"] as? String != "disconnected" { resume() }
        }
    }

    private func answer(_ frame: GlassesFrame) {
        let isTimer: Bool = locked {
            guard let timer = timers.removeValue(forKey: frame.id) else { return false }
            tick(timer, frame)
            return true
        }
        if isTimer { return }
        //: if assistant
        if let refused = locked({ refusals.removeValue(forKey: frame.id) }) {
            if let error = frame.payload["error"] as? JSONObject { refused(error["code"] as? String ?? "") }
            return
        }
        //: end
        var data: Data?
        let waiter: CheckedContinuation<GlassesAnswer, Error>? = locked {
            data = media.removeValue(forKey: frame.id)
            return waiting.removeValue(forKey: frame.id)
        }
        if let error = frame.payload["error"] as? JSONObject {
            let code = error["code"] as? String ?? "platform_error"
            let message = error["message"] as? String ?? ""
            waiter?.resume(throwing: GlassesError(
                code: code, message: message, part: error["part"] as? String ?? "", by: error["by"] as? String ?? ""))
        } else {
            waiter?.resume(returning: GlassesAnswer(id: frame.id, result: frame.payload, data: data))
        }
    }

    private func emit(_ event: GlassesEvent, queued: Bool) {
        locked {
            let list = handlers[event.type] ?? []
            for entry in list {
                working += 1
                Task {
                    await entry.handler(event)
                    self.done()
                }
            }
            //: if assistant
            if conversation?.take(event) == true { return }
            //: end
            if !list.isEmpty || !queued { return }
            if let continuation = taker {
                taker = nil
                hand(event, to: continuation)
            } else {
                queue.append(event)
                if queue.count > Glasses.maxQueue { queue.removeFirst() }
            }
        }
    }

    private func hand(_ event: GlassesEvent?, to continuation: CheckedContinuation<GlassesEvent?, Error>) {
        looping = true
        working += 1
        continuation.resume(returning: event)
    }

    private func rest() {
        let was: Bool = locked {
            defer { looping = false }
            return looping
        }
        if was { done() }
    }

    fileprivate func done() {
        locked { working -= 1 }
        check()
    }

    /// Answers barriers a moment later, if everything then waits for the glasses.
    private func check() {
        if locked({ barriers.isEmpty }) { return }
        Task {
            await Task.yield()
            self.locked {
                if self.working > self.waiting.count + self.gatewayWaits { return } // the current work will check again
                //: if assistant
                if self.conversation?.catchUp() == true { return } // the gateway may still react to what it was sent
                //: end
                for id in self.barriers { self.way.passed(id, calls: self.callCount) }
                self.barriers = []
            }
        }
    }

    private func end(_ why: GlassesError) {
        locked {
            ended = why
            welcome?.resume(throwing: why)
            welcome = nil
            for continuation in waiting.values { continuation.resume(throwing: why) }
            waiting = [:]
            timers = [:]
            stalled = []
            if let continuation = taker { Glasses.finish(continuation, why) }
            taker = nil
            //: if assistant
            for call in calls { call.stop() }
            for proof in proofs { proof.cancel() }
            conversation?.end(why.code)
            //: end
        }
    }

    private static func finish(_ continuation: CheckedContinuation<GlassesEvent?, Error>, _ why: GlassesError) {
        if why.code == "closed" {
            continuation.resume(returning: nil)
        } else {
            continuation.resume(throwing: why)
        }
    }

    /// Reports whether an event was received before: after a restart the service may send one twice.
    private func again(_ id: String) -> Bool {
        if id.isEmpty { return false }
        return locked {
            if seen.contains(id) { return true }
            seen.append(id)
            if seen.count > Glasses.maxSeen { seen.removeFirst() }
            return false
        }
    }

    fileprivate func locked<T>(_ body: () throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try body()
    }
}
