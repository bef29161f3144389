
//: if assistant
/// A function that the model may call. parameters is the JSON Schema of its arguments, an object; run gets the
/// arguments and returns the result for the model: a text, or a value that JSON can represent.
public struct AssistantTool: @unchecked Sendable {
    public var name: String
    public var description: String
    public var parameters: JSONObject
    public var run: @Sendable (JSONObject) async throws -> Any

    public init(name: String, description: String,
                parameters: JSONObject = ["type": "object", "properties": JSONObject()],
                run: @escaping @Sendable (JSONObject) async throws -> Any) {
        self.name = name
        self.description = description
        self.parameters = parameters
        self.run = run
    }

    var described: JSONObject {
        let function: JSONObject = ["name": name, "description": description, "parameters": parameters]
        return ["type": "function", "function": function]
    }
}

/// The model's answer. To continue, pass messages + [["role": "user", "content": "..."]]. messages does not include the
/// system text.
public struct AssistantAnswer: @unchecked Sendable {
    public let text: String
    public let messages: [JSONObject]
}

extension GlassesError {
    private static let fixHints = [
        "no_gateway": "Start a session with assistantScript, or use createSimulatorSession in a project with models.",
        "no_credit": "Ask the account's owner to add credit on the credit page; an assistantScript costs nothing.",
        "cap_reached": "Ask the owner to raise the cap on the project's gateway page, or wait until it resets.",
        "credit_reserved": "Ask again when the calls that have reserved the credit have ended.",
        "credit_locked": "Ask the account's owner to confirm their email address.",
        "request_too_large": "Send fewer or shorter messages.",
        "invalid_key": "Attach to a session that is still open; with an attestation, use a live project key.",
        "attestation_required":
            "Pass GlassesSettings an attestation, ask the owner for a higher allowance, or wait until it resets.",
        "model_not_found": "Choose a textModel with setAssistantConfig.",
        "not_configured": "Ask the backend's operator to set up a provider; until then use an assistantScript.",
        "no_storage": "Make the user's data directory writable, or pass GlassesSettings a user that the app stores.",
        "cancelled": "Ask again when the wearer wants an answer.",
        "too_many_rounds": "Make the tools' results say clearly that they are complete.",
        "bad_answer": "Ask again; if that does not help, choose another textModel.",
    ]

    static func assistant(_ code: String, _ message: String, status: Int = 0, wait: String = "") -> GlassesError {
        let waitingHelps = status == 0 || status == 408 || status == 429 || status >= 500
        var error = GlassesError(code: code, message: message)
        error.fixHint = fixHints[code] ?? (waitingHelps ? "Ask again." : "Change the request as the message explains.")
        if wait.count < 7, let seconds = Int(wait), seconds > 0 { error.retryAfterMs = seconds * 1000 }
        return error
    }
}

/// One request to the AI gateway. Its parts are the status of the answer and then its bytes.
final class AssistantCall: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    enum Part: Sendable {
        case status(Int, wait: String, date: String)
        case bytes(Data)
    }

    private(set) var parts: AsyncThrowingStream<Part, Error>!
    private var continuation: AsyncThrowingStream<Part, Error>.Continuation!
    private var session: URLSession!

    init(_ request: URLRequest) {
        super.init()
        parts = AsyncThrowingStream { continuation in self.continuation = continuation }
        session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
        session.dataTask(with: request).resume()
        session.finishTasksAndInvalidate()
    }

    func stop() { session.invalidateAndCancel() }

    // The token is sent nowhere else.
    func urlSession(_ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void) {
        let http = response as? HTTPURLResponse
        continuation.yield(.status(
            http?.statusCode ?? 0, wait: http?.allHeaderFields["Retry-After"] as? String ?? "",
            date: http?.allHeaderFields["Date"] as? String ?? ""))
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        continuation.yield(.bytes(data))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        continuation.finish(throwing: error)
    }
}

/// A request to the AI gateway. With a body and a user, the service remembers what the user says.
struct AssistantRequest {
    var method = "POST"
    var path = "/chat/completions"
    var body: JSONObject?
    var user = ""
}

/// The model's message, assembled from the parts that the gateway sends.
struct AssistantReply {
    static let maxRounds = 8 // answers of the model to one question
    private static let maxAnswer = 1 << 20 // bytes of an answer
    private static let maxCalls = 64 // tool calls in one answer
    private static let quiet = 120.0 // seconds without a byte from the gateway

    struct ToolCall {
        var id = ""
        var name = ""
        var arguments = ""
    }

    var text = ""
    var calls: [ToolCall] = []
    var isComplete = false
    private var finished = false
    private var status = 0
    private var wait = ""
    private(set) var date = "" // of the gateway
    private var rest = Data()
    private var left = AssistantReply.maxAnswer
    private let isObject: Bool // a JSON object instead of events, or nothing

    init(isObject: Bool) {
        self.isObject = isObject
    }

    static func request(_ asked: AssistantRequest, _ gateway: JSONObject, isVirtual: Bool) throws -> URLRequest {
        guard let address = gateway["url"] as? String, let token = gateway["token"] as? String,
              let url = URL(string: address + asked.path) else {
            throw GlassesError.assistant("no_gateway", "this session has no AI gateway")
        }
        // A virtual clock does not measure how long the gateway takes.
        var request = URLRequest(url: url, timeoutInterval: isVirtual ? 86_400 : quiet)
        request.httpMethod = asked.method
        request.setValue("Bearer " + token, forHTTPHeaderField: "Authorization")
        if !asked.user.isEmpty { request.setValue(asked.user, forHTTPHeaderField: "X-Service-User") }
        guard let body = asked.body else { return request }
        guard JSONSerialization.isValidJSONObject(body) else {
            throw GlassesError(code: "bad_payload", message: "the conversation cannot be encoded as JSON")
        }
        request.httpBody = try JSONSerialization.data(withJSONObject: body)
        if !asked.user.isEmpty { request.setValue("wearer-agreed", forHTTPHeaderField: "X-Service-Memory") }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        return request
    }

    var message: JSONObject {
        var message: JSONObject = ["role": "assistant", "content": text]
        if !calls.isEmpty {
            message["tool_calls"] = calls.map { call -> JSONObject in
                let function: JSONObject = ["name": call.name, "arguments": call.arguments]
                return ["id": call.id, "type": "function", "function": function]
            }
        }
        return message
    }

    /// The answer to a request without a body.
    var object: JSONObject { (try? JSONSerialization.jsonObject(with: rest)) as? JSONObject ?? [:] }

    /// Takes a part of the answer. Returns the text so far, once for each event that extends it.
    mutating func take(_ part: AssistantCall.Part) throws -> [String] {
        var texts: [String] = []
        switch part {
        case .status(let status, let wait, let date):
            self.status = status
            self.wait = wait
            self.date = date
        case .bytes(let data):
            left -= data.count
            if left < 0 { throw GlassesError.assistant("bad_answer", "the answer is over 1 MB") }
            rest.append(data)
            while !isObject, status == 200, !isComplete, let end = rest.firstIndex(of: 10) {
                let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
                rest = Data(rest[rest.index(after: end)...])
                if try event(line) { texts.append(text) }
            }
        }
        return texts
    }

    /// Fails if the answer was a refusal or broke off.
    func end() throws {
        if isObject && (status == 200 || status == 204) { return }
        if status == 200 {
            if isComplete || finished { return }
            throw GlassesError.assistant("answer_broken", "the answer broke off")
        }
        let error = object["error"] as? JSONObject
        var refusal = GlassesError.assistant(
            error?["code"] as? String ?? "gateway_error",
            error?["message"] as? String ?? "the AI gateway answered with status \(status)", status: status, wait: wait)
        refusal.reason = error?["reason"] as? String ?? ""
        throw refusal
    }

    /// Texts of system errors may quote the request, so they are not reported.
    func explained(_ error: Error) -> Error {
        guard let failed = error as? URLError else { return error }
        switch failed.code {
        case .cancelled:
            return GlassesError.assistant("cancelled", "the app stopped asking")
        case .timedOut:
            return GlassesError.assistant(
                "gateway_timeout", "the AI gateway sent nothing for \(Int(AssistantReply.quiet)) s")
        default:
            if status != 0 { return GlassesError.assistant("answer_broken", "the answer broke off") }
            return GlassesError.assistant(
                "gateway_unreachable", "the AI gateway cannot be reached (\(failed.code.rawValue))")
        }
    }

    private mutating func event(_ line: String) throws -> Bool {
        guard line.hasPrefix("data:") else { return false }
        let data = line.dropFirst(5).trimmingCharacters(in: .whitespacesAndNewlines)
        if data == "[DONE]" {
            isComplete = true
            return false
        }
        guard let chunk = (try? JSONSerialization.jsonObject(with: Data(data.utf8))) as? JSONObject else {
            throw GlassesError.assistant("bad_answer", "the AI gateway sent an invalid answer")
        }
        if let error = chunk["error"] as? JSONObject {
            throw GlassesError.assistant(
                error["code"] as? String ?? "provider_error", error["message"] as? String ?? "the answer broke off")
        }
        let choice = (chunk["choices"] as? [JSONObject])?.first ?? [:]
        if choice["finish_reason"] is String { finished = true }
        let delta = choice["delta"] as? JSONObject ?? [:]
        for part in delta["tool_calls"] as? [JSONObject] ?? [] { try toolCall(part) }
        let more = delta["content"] as? String ?? ""
        text += more
        return !more.isEmpty
    }

    private mutating func toolCall(_ part: JSONObject) throws {
        let index = part["index"] as? Int ?? calls.count
        if index == calls.count && index < AssistantReply.maxCalls { calls.append(ToolCall()) }
        guard calls.indices.contains(index) else {
            throw GlassesError.assistant("bad_answer", "the AI gateway sent an invalid answer")
        }
        let function = part["function"] as? JSONObject ?? [:]
        if calls[index].id.isEmpty { calls[index].id = part["id"] as? String ?? "" }
        calls[index].name += function["name"] as? String ?? ""
        calls[index].arguments += function["arguments"] as? String ?? ""
    }
}
//: end
