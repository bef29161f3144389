
//: if assistant
/// How an install proves that it is genuine.
public enum AttestationProof: Sendable {
    /// By App Attest, which simulators do not have.
    case appAttest
    /// By a signature with the private key of the project's test key, in PEM, for simulators and CI. Read it from a
    /// file outside the app. Release builds refuse it with test_key_refused.
    case testKey(String)
}

/// Attests this install to a backend such as https://service.example, and keeps its token in memory only. Pass it in
/// GlassesSettings, or use token() for calls of the gateway with another client. The id of the key of App Attest is
/// stored in Application Support, in the folder of app and outside backups. Create one Attestation for each app.
/// backend begins with https://, or with http:// if it is on this machine; token() refuses others with not_configured.
public actor Attestation {
    private struct Token {
        let text: String
        let expires: Date
    }

    private static let renewBefore = 300.0 // seconds before a token expires
    private static let limit: UInt64 = 60 // seconds that a caller waits for an attestation
    private static let forgotten = ["unknown_install", "wrong_environment"] // refusals that only a new key can change

    nonisolated let url: String // of the gateway
    private let projectKey: String
    private let app: String
    private let proof: AttestationProof
    var now: @Sendable () -> Date = { Date() }
    private var current: Token?
    private var running: Task<Token, Error>?
    private var freshKey: String? // of App Attest, not attested yet

    public init(backend: String, projectKey: String, app: String, proof: AttestationProof = .appAttest) {
        url = (backend.hasSuffix("/") ? String(backend.dropLast()) : backend) + "/v1"
        self.projectKey = projectKey
        self.app = app
        self.proof = proof
    }

    /// Returns the token that replaces the project key as bearer. It attests first if there is no token or it expires
    /// within 5 minutes. After the gateway has answered 401 invalid_key to a token, pass that as refused, once, to get
    /// another one. Errors, with fixHint: attestation_failed, whose reason says why, attestation_unavailable,
    /// attestation_timeout, gateway_unreachable, gateway_timeout, no_storage, and those of the gateway.
    public func token(refused: String? = nil) async throws -> String {
        var known = current
        if let token = known, token.text == refused || now() >= token.expires { known = nil }
        if let token = known, now() < token.expires.addingTimeInterval(-Attestation.renewBefore) { return token.text }
        let task = running ?? begin()
        do {
            return try await Attestation.result(of: task).text
        } catch {
            let failed = error as? GlassesError
            guard let token = known, now() < token.expires, failed?.code != "attestation_failed" else { throw error }
            return token.text // it is still valid, and the next call tries again
        }
    }

    /// Waits for an attestation until the limit, or until the caller is cancelled. The attestation itself goes on.
    private static func result(of task: Task<Token, Error>) async throws -> Token {
        let results = AsyncThrowingStream<Token, Error> { continuation in
            let timer = Task {
                try await Task.sleep(nanoseconds: Attestation.limit * 1_000_000_000)
                continuation.finish(throwing: Attestation.failure(
                    "attestation_timeout", "the attestation took over \(Attestation.limit) s", "Try again."))
            }
            continuation.onTermination = { _ in timer.cancel() }
            Task {
                do {
                    continuation.yield(try await task.value)
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
        }
        for try await token in results { return token }
        throw GlassesError.assistant("cancelled", "the app stopped asking")
    }

    /// Starts the attestation that all callers share.
    private func begin() -> Task<Token, Error> {
        let task = Task { () throws -> Token in
            defer { running = nil }
            let token = try await attest()
            current = token
            return token
        }
        running = task
        return task
    }

    private func attest() async throws -> Token {
        let began = now()
        let reply: AssistantReply
        switch proof {
        case .appAttest:
            reply = try await attestApp()
        case .testKey(let pem):
            reply = try await sign(pem)
        }
        let http = DateFormatter()
        http.locale = Locale(identifier: "en_US_POSIX")
        http.timeZone = TimeZone(secondsFromGMT: 0)
        http.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        // The life of the token is by the clock of the backend, because that of the device may be wrong.
        guard let text = reply.object["token"] as? String, let from = http.date(from: reply.date),
              let end = ISO8601DateFormatter().date(from: reply.object["expiresAt"] as? String ?? "") else {
            throw GlassesError.assistant("bad_answer", "the backend sent no token, or not when it expires")
        }
        return Token(text: text, expires: began.addingTimeInterval(end.timeIntervalSince(from)))
    }

    private func challenge() async throws -> String {
        try await post("challenge", [:]).object["challenge"] as? String ?? ""
    }

    /// Refuses to send the project key in the clear to another machine.
    private func checkAddress() throws {
        let address = URL(string: url)
        let host = address?.host ?? ""
        let isLocal = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
        if !host.isEmpty && (address?.scheme == "https" || address?.scheme == "http" && isLocal) { return }
        throw Attestation.failure(
            "not_configured", "the backend is \(url.dropLast(3)), but tokens are sent only by https",
            "Pass the address of the backend, such as https://service.example.")
    }

    private func post(_ route: String, _ fields: JSONObject) async throws -> AssistantReply {
        try checkAddress()
        let asked = AssistantRequest(path: "/attest/" + route, body: fields)
        let gateway: JSONObject = ["url": url, "token": projectKey]
        let call = AssistantCall(try AssistantReply.request(asked, gateway, isVirtual: false))
        defer { call.stop() }
        var reply = AssistantReply(isObject: true)
        var parts = call.parts.makeAsyncIterator()
        do {
            while true {
                guard let part = try await parts.next() else { break }
                _ = try reply.take(part)
            }
            try reply.end()
        } catch {
            throw Attestation.explained(reply.explained(error))
        }
        return reply
    }

    /// Signs with the test key.
    private func sign(_ pem: String) async throws -> AssistantReply {
        if GlassesTarget.isRelease {
            throw Attestation.failure("test_key_refused", "a release build does not attest with a test key",
                                      "Pass appAttest in release builds.")
        }
        #if canImport(CryptoKit)
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw Attestation.failure(
                "test_key_refused", "the test key is not an EC private key in PEM",
                "Pass the text of the file that openssl ecparam -name prime256v1 -genkey -noout wrote.")
        }
        let install = try storage { try AssistantUser.stored(AssistantUser.fileOf(app, "glasses-install")) }
        let challenge = try await self.challenge()
        let signature = try key.signature(for: Data("\(challenge)\n\(install)".utf8)).derRepresentation
        return try await post("development", [
            "challenge": challenge, "install": install, "signature": signature.base64EncodedString(),
        ])
        #else
        throw Attestation.unavailable("CryptoKit is missing")
        #endif
    }

    /// Attests a new key, or sends an assertion by the stored one. If the backend forgot that, it attests a new one.
    private func attestApp() async throws -> AssistantReply {
        #if canImport(CryptoKit) && canImport(DeviceCheck)
        let service = DCAppAttestService.shared
        guard service.isSupported else { throw Attestation.unavailable("App Attest is not supported here") }
        var file = try storage { try AssistantUser.fileOf(app, "glasses-app-attest") }
        if let key = try? String(contentsOf: file, encoding: .utf8) {
            do {
                let (challenge, hash) = try await hashedChallenge()
                let object = try await service.generateAssertion(key, clientDataHash: hash)
                return try await prove("apple/assertion", challenge, key, object)
            } catch let error as DCError where error.code == .invalidKey {
                // The app was installed again, or this is another device.
            } catch let error as GlassesError where Attestation.forgotten.contains(error.reason) {
                // The backend deleted the install, or the app now has another environment than the key.
            } catch let error as DCError {
                throw Attestation.unavailable("App Attest failed with code \(error.code.rawValue)")
            }
            try? FileManager.default.removeItem(at: file)
        }
        do {
            let key: String
            if let fresh = freshKey { key = fresh } else { key = try await service.generateKey() }
            freshKey = key
            let (challenge, hash) = try await hashedChallenge()
            let object = try await service.attestKey(key, clientDataHash: hash)
            freshKey = nil
            try storage {
                try AssistantUser.write(key, to: file) // first, because the backend's answer may be lost
                var values = URLResourceValues()
                values.isExcludedFromBackup = true
                try file.setResourceValues(values)
            }
            return try await prove("apple", challenge, key, object)
        } catch let error as DCError {
            if error.code != .serverUnavailable { freshKey = nil } // Apple asks to try again with the same key
            throw Attestation.unavailable("App Attest failed with code \(error.code.rawValue)")
        }
        #else
        throw Attestation.unavailable("this system has no App Attest")
        #endif
    }

    #if canImport(CryptoKit)
    private func hashedChallenge() async throws -> (String, Data) {
        let challenge = try await self.challenge()
        return (challenge, Data(SHA256.hash(data: Data(challenge.utf8))))
    }
    #endif

    private func prove(
        _ route: String, _ challenge: String, _ key: String, _ object: Data
    ) async throws -> AssistantReply {
        try await post(route, ["challenge": challenge, "keyId": key, "object": object.base64EncodedString()])
    }

    private func storage<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch {
            throw Attestation.failure("no_storage", "the install cannot be stored: \(error.localizedDescription)",
                                      "Make Application Support writable.")
        }
    }

    private static let hints = [
        "invalid_key": "Use a live project key.",
        "not_configured": "Ask the project's owner to add this app, or a test key, on the project's AI gateway page.",
        "revoked": "Ask the project's owner, who revoked this install.",
        "wrong_app": "Compare the app's team and bundle id with those on the project's AI gateway page.",
        "wrong_environment": "Compare the app's App Attest environment with the one on the project's AI gateway page.",
        "wrong_signature": "Use the private key that belongs to the test key on the project's AI gateway page.",
    ]

    /// Adds the next step to a refusal of the backend.
    private static func explained(_ error: Error) -> Error {
        guard var refusal = error as? GlassesError else { return error }
        let other = refusal.code == "attestation_failed"
            ? "Find the reason in the documentation, page attestation." : refusal.fixHint
        refusal.fixHint = hints[refusal.reason.isEmpty ? refusal.code : refusal.reason] ?? other
        return refusal
    }

    private static func unavailable(_ why: String) -> GlassesError {
        failure("attestation_unavailable", "this device could not attest: \(why)",
                "Try again; a device that cannot attest has only the daily allowance of the project key.")
    }

    private static func failure(_ code: String, _ message: String, _ hint: String) -> GlassesError {
        var error = GlassesError(code: code, message: message)
        error.fixHint = hint
        return error
    }
}
//: end
