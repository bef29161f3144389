struct GlassesFrame: @unchecked Sendable {
    let type: String
    let id: String
    let at: Int
    let seq: Int
    let payload: JSONObject
    let data: Data?

    init(type: String, id: String = "", at: Int, payload: JSONObject, data: Data? = nil) {
        self.type = type
        self.id = id
        self.at = at
        seq = 0
        self.payload = payload
        self.data = data
    }

    /// nil if it is not a frame: a newer service may send what this module does not know.
    init?(_ message: URLSessionWebSocketTask.Message) {
        var header: Data
        switch message {
        case .string(let text):
            header = Data(text.utf8)
            data = nil
        case .data(let bytes):
            let whole = [UInt8](bytes)
            guard whole.count >= 2 else { return nil }
            let end = 2 + Int(whole[0]) * 256 + Int(whole[1])
            guard end <= whole.count else { return nil }
            header = Data(whole[2..<end])
            data = Data(whole[end...])
        @unknown default:
            return nil
        }
        guard let json = try? JSONSerialization.jsonObject(with: header), let frame = json as? JSONObject,
              let type = frame["type"] as? String else { return nil }
        self.type = type
        id = frame["id"] as? String ?? ""
        at = frame["at"] as? Int ?? 0
        seq = frame["seq"] as? Int ?? 0
        payload = frame["payload"] as? JSONObject ?? [:]
    }

    static func now() -> Int { Int(Date().timeIntervalSince1970 * 1000) }
}

/// Keeps one session attached: reconnects with its cursor and resends unacknowledged frames.
final class GlassesLink: @unchecked Sendable {
    private static let maxFrame = 64 << 10 // bytes of a text frame
    private static let maxUnacknowledged = 1000 // frames
    private static let firstPause = 0.3, longestPause = 10.0 // seconds between attempts
    private static let patience = 10_000 // ms in which the first attach must succeed

    private let target: GlassesTarget
    private let receive: @Sendable (GlassesFrame) -> Void
    private let end: @Sendable (GlassesError) -> Void
    private let lock = NSRecursiveLock() // guards what follows, and the order of sends
    private let prefix = UUID().uuidString.prefix(13)
    private let began = GlassesFrame.now()
    private var current = "offline"
    private var task: URLSessionWebSocketTask?
    private var attached = false
    private var ended: GlassesError?
    private var count = 0
    private var cursor: Int?
    private var at = 0 // the session's time of the newest frame
    private var isVirtual = false // whether its clock is virtual, and stands still while the app is away
    private var unacknowledged: [(id: String, text: String)] = []
    private var attempt = 0

    init(_ target: GlassesTarget, receive: @escaping @Sendable (GlassesFrame) -> Void, end: @escaping @Sendable (GlassesError) -> Void) {
        self.target = target
        self.receive = receive
        self.end = end
    }

    var state: String { locked { current } }

    /// Assigns an id to the frame, keeps the frame until it is acknowledged, and returns the id; ready gets the id
    /// first.
    @discardableResult
    func send(_ type: String, _ payload: JSONObject, ready: (String) -> Void = { _ in }) throws -> String {
        try locked {
            if let ended = ended { throw ended }
            let id = nextId()
            let text = try encode(type, id, payload)
            if text.utf8.count > GlassesLink.maxFrame {
                throw GlassesError(code: "bad_payload", message: "\(type) would be longer than 64 KB")
            }
            if unacknowledged.count >= GlassesLink.maxUnacknowledged {
                throw GlassesError(code: "busy", message: "too many frames wait for the service")
            }
            ready(id)
            unacknowledged.append((id, text))
            if attached { write(text) }
            return id
        }
    }

    //: if assistant
    /// Sends a binary frame, which is not repeated if the connection is lost.
    func sendBytes(_ type: String, _ payload: JSONObject, _ data: Data) {
        locked {
            guard attached, let header = try? encode(type, nextId(), payload) else { return }
            let text = Data(header.utf8)
            let length = Data([UInt8(text.count >> 8), UInt8(text.count & 255)])
            task?.send(.data(length + text + data)) { _ in } // the listener notices
        }
    }

    //: end
    /// Answers a barrier of the service. calls is the number of calls to the AI gateway in progress.
    func passed(_ id: String, calls: Int) {
        locked {
            if attached, let text = try? encode("barrier", id, ["calls": calls]) { write(text) }
        }
    }

    func close(_ why: GlassesError) {
        let first: Bool = locked {
            if ended != nil { return false }
            ended = why
            attached = false
            current = "closed"
            return true
        }
        if !first { return }
        locked { task }?.cancel(with: .normalClosure, reason: nil)
        end(why)
    }

    func open() {
        let task = URLSession.shared.webSocketTask(with: target.url)
        task.maximumMessageSize = 4 << 20
        let hello: String? = locked {
            if ended != nil { return nil }
            self.task = task
            var payload: JSONObject = ["secret": target.secret, "app": target.app, "barrier": true, "gateway": true]
            if let cursor = cursor { payload["since"] = cursor }
            return try? encode("hello", nextId(), payload)
        }
        guard let hello = hello else { return }
        task.resume()
        task.send(.string(hello)) { _ in } // an error ends receive as well
        listen(task)
    }

    private func listen(_ task: URLSessionWebSocketTask) {
        task.receive { [weak self] result in
            guard let self = self else { return }
            switch result {
            case .success(let message):
                if let frame = GlassesFrame(message) { self.take(frame) }
                self.listen(task)
            case .failure:
                let reason = task.closeReason.flatMap { String(data: $0, encoding: .utf8) } ?? ""
                self.lost(task.closeCode.rawValue, reason)
            }
        }
    }

    private func lost(_ code: Int, _ reason: String) {
        var was = false
        var refused: [String] = []
        let over: Bool = locked {
            if ended != nil { return true }
            was = attached
            attached = false
            current = "offline"
            if code == 1009 { refused = unacknowledged.map { $0.id } }
            return false
        }
        if over { return }
        if was { receive(GlassesFrame(type: "connection", at: sessionNow(), payload: ["state": "offline"])) }
        for id in refused { refuse(id, ["code": "bad_frame", "message": "the frame was too big for the service"]) }
        switch code {
        case 4400, 4401:
            return close(GlassesError(code: "refused", message: reason.isEmpty ? "the service refused the app" : reason))
        case 4410:
            return close(GlassesError(code: "closed", message: reason.isEmpty ? "the session is closed" : reason))
        default:
            comeBack()
        }
    }

    private func comeBack() {
        let pause: Double? = locked {
            if cursor == nil && GlassesFrame.now() - began > GlassesLink.patience { return nil }
            attempt = min(attempt + 1, 10)
            return min(GlassesLink.firstPause * pow(2, Double(attempt - 1)), GlassesLink.longestPause)
        }
        guard let pause = pause else {
            return close(GlassesError(code: "not_connected", message: "no session answers at the endpoint"))
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + pause) { [weak self] in self?.open() }
    }

    private func take(_ frame: GlassesFrame) {
        let mine: Bool = locked {
            at = max(at, frame.at)
            if frame.seq > 0 { see(frame.seq) }
            switch frame.type {
            case "welcome":
                current = frame.payload["link"] as? String ?? "connected"
                attempt = 0
                isVirtual = (frame.payload["glasses"] as? JSONObject)?["clock"] as? String == "virtual"
                if cursor == nil { cursor = frame.payload["lastSeq"] as? Int ?? 0 }
                attached = true
                for waiting in unacknowledged { write(waiting.text) }
            case "ack":
                let id = frame.payload["id"] as? String
                unacknowledged.removeAll { $0.id == id }
                return true
            case "cursor":
                see(frame.payload["seq"] as? Int ?? 0)
                return true
            case "link":
                current = frame.payload["state"] as? String ?? current
            default:
                break
            }
            return false
        }
        if mine { return }
        if frame.type == "error" {
            refuse(frame.id, frame.payload)
        } else {
            receive(frame)
        }
    }

    private func refuse(_ id: String, _ error: JSONObject) {
        let known: Bool = locked {
            let before = unacknowledged.count
            unacknowledged.removeAll { $0.id == id }
            return unacknowledged.count < before
        }
        if known { receive(GlassesFrame(type: "result", id: id, at: sessionNow(), payload: ["error": error])) }
    }

    private func sessionNow() -> Int { locked { isVirtual ? at : GlassesFrame.now() } }

    private func see(_ seq: Int) {
        if let seen = cursor, seq > seen { cursor = seq }
    }

    private func nextId() -> String {
        count += 1
        return "\(prefix)-\(count)"
    }

    private func encode(_ type: String, _ id: String, _ payload: JSONObject) throws -> String {
        let frame: JSONObject = ["v": 1, "type": type, "id": id, "at": GlassesFrame.now(), "payload": payload]
        guard JSONSerialization.isValidJSONObject(frame) else {
            throw GlassesError(code: "bad_payload", message: "\(type) cannot be encoded as JSON")
        }
        return String(decoding: try JSONSerialization.data(withJSONObject: frame), as: UTF8.self)
    }

    private func write(_ text: String) {
        task?.send(.string(text)) { _ in } // the listener notices, and unacknowledged frames are resent
    }

    private func locked<T>(_ body: () throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try body()
    }
}

