// A stand-in for the accelerator: the same ports, but all it can do is copy segment 0 to segment 1.
//
// It reads the program first (one burst) and stops with a fault if a word has opcode 0. The size of
// segment 7 chooses a flaw: what real hardware must never show, and the harness must notice.
`define CONSTANTS       // replaced: offsets of registers, identity, configuration

module microtron (
    input clk, input rst,
    output [`IDS-1:0] m_axi_arid, output [`ADDRESS-1:0] m_axi_araddr, output [7:0] m_axi_arlen,
    output [2:0] m_axi_arsize, output [1:0] m_axi_arburst, output m_axi_arvalid,
    input m_axi_arready, input [`IDS-1:0] m_axi_rid, input [`BUS-1:0] m_axi_rdata,
    input [1:0] m_axi_rresp, input m_axi_rlast, input m_axi_rvalid, output m_axi_rready,
    output [`IDS-1:0] m_axi_awid, output [`ADDRESS-1:0] m_axi_awaddr, output [7:0] m_axi_awlen,
    output [2:0] m_axi_awsize, output [1:0] m_axi_awburst, output m_axi_awvalid,
    input m_axi_awready, output [`BUS-1:0] m_axi_wdata, output [`BUS/8-1:0] m_axi_wstrb,
    output m_axi_wlast, output m_axi_wvalid, input m_axi_wready,
    input [`IDS-1:0] m_axi_bid, input [1:0] m_axi_bresp, input m_axi_bvalid, output m_axi_bready,

    input [11:0] s_axi_awaddr, input [2:0] s_axi_awprot, input s_axi_awvalid,
    output s_axi_awready, input [31:0] s_axi_wdata, input [3:0] s_axi_wstrb, input s_axi_wvalid,
    output s_axi_wready, output [1:0] s_axi_bresp, output s_axi_bvalid, input s_axi_bready,
    input [11:0] s_axi_araddr, input [2:0] s_axi_arprot, input s_axi_arvalid,
    output s_axi_arready, output [31:0] s_axi_rdata, output [1:0] s_axi_rresp,
    output s_axi_rvalid, input s_axi_rready,

    output reg interrupt,
    output trace_running,
    output trace_load_start, output [31:0] trace_load_start_position,
    output trace_load_end, output [31:0] trace_load_end_position,
    output trace_gemm_start, output [31:0] trace_gemm_start_position,
    output trace_gemm_end, output [31:0] trace_gemm_end_position,
    output trace_alu_start, output [31:0] trace_alu_start_position,
    output trace_alu_end, output [31:0] trace_alu_end_position,
    output trace_store_start, output [31:0] trace_store_start_position,
    output trace_store_end, output [31:0] trace_store_end_position
);
    localparam BYTES = `BUS / 8, BURST = 16;
    localparam [3:0] IDLE = 0, FETCH_ADDRESS = 1, FETCH = 2, LOAD_ADDRESS = 3, LOAD = 4,
        STORE_ADDRESS = 5, STORE = 6, ANSWER = 7, STOP = 8;

    reg [3:0] state;
    reg done, failed, interrupt_enable;
    reg [31:0] fault, fault_position;
    reg [31:0] settings [0:1023];
    reg [63:0] cycles, bytes_loaded, bytes_stored;
    reg [`BUS-1:0] buffer [0:BURST-1];
    reg [31:0] offset;                      // of the burst that is copied
    reg [7:0] beat;
    reg [31:0] tick;                        // since the start

    wire [31:0] size = settings[`SEGMENT0_SIZE / 4];
    wire [63:0] program_base = {settings[`PROGRAM_HIGH / 4], settings[`PROGRAM_LOW / 4]};
    wire [63:0] source = {settings[`SEGMENT0_HIGH / 4], settings[`SEGMENT0_LOW / 4]};
    wire [63:0] target = {settings[`SEGMENT1_HIGH / 4], settings[`SEGMENT1_LOW / 4]};
    wire [31:0] left = (size - offset + BYTES - 1) / BYTES;     // beats, this burst included
    wire [7:0] beats = left > BURST ? BURST : left[7:0];
    wire [31:0] program_beats = settings[`PROGRAM_COUNT / 4] * 32 / BYTES;
    wire running = state != IDLE;
    wire [31:0] flaw = settings[`SEGMENT7_SIZE / 4];

    // The master.
    assign m_axi_arid = state == FETCH_ADDRESS ? 0 : 1;
    assign m_axi_arvalid = (state == FETCH_ADDRESS || state == LOAD_ADDRESS && fault == 0)
        && !(flaw == `UNSTABLE && tick[0]);
    wire [63:0] read_address = state == FETCH_ADDRESS ? program_base : source + offset;
    assign m_axi_araddr = read_address[`ADDRESS-1:0];
    assign m_axi_arlen = state == FETCH_ADDRESS ? program_beats - 1 : beats - 1;
    assign m_axi_arsize = $clog2(BYTES);
    assign m_axi_arburst = flaw == `FIXED ? 0 : 1;
    assign m_axi_rready = (state == FETCH || state == LOAD) && tick[1:0] != 3;
    assign m_axi_awid = 0;
    assign m_axi_awvalid = state == STORE_ADDRESS && fault == 0;
    wire [63:0] write_address = target + offset + (flaw == `STRAY ? 64'h2000 : 0)
        + (flaw == `CROSSING ? 4096 - BYTES : 0);
    assign m_axi_awaddr = write_address[`ADDRESS-1:0];
    assign m_axi_awlen = beats - 1;
    assign m_axi_awsize = $clog2(BYTES);
    assign m_axi_awburst = 1;
    assign m_axi_wvalid = state == STORE && !(flaw == `DEPENDENT && m_axi_wready);
    assign m_axi_wdata = buffer[beat];
    wire [31:0] tail = size - offset - beat * BYTES;            // bytes from this beat on
    assign m_axi_wstrb = tail >= BYTES ? {BYTES{1'b1}} : ~({BYTES{1'b1}} << tail);
    assign m_axi_wlast = beat == beats - 1 && flaw != `ENDLESS;
    assign m_axi_bready = state == ANSWER;

    // The trace: loads are instruction 0, stores instruction 1.
    assign trace_running = running;
    assign trace_load_start = state == LOAD_ADDRESS && m_axi_arready && offset == 0;
    assign trace_load_end = state == LOAD && m_axi_rvalid && m_axi_rready && m_axi_rlast
        && left <= BURST;
    assign trace_store_start = state == STORE_ADDRESS && m_axi_awready && offset == 0;
    assign trace_store_end = state == ANSWER && m_axi_bvalid && left <= BURST;
    assign trace_load_start_position = 0;
    assign trace_load_end_position = 0;
    assign trace_store_start_position = 1;
    assign trace_store_end_position = 1;
    assign {trace_gemm_start, trace_gemm_end, trace_alu_start, trace_alu_end} = 0;
    assign {trace_gemm_start_position, trace_gemm_end_position} = 0;
    assign {trace_alu_start_position, trace_alu_end_position} = 0;

    // The registers.
    reg write_valid, data_valid, answer_valid, read_valid;
    reg [11:0] write_offset;
    reg [31:0] write_data, read_data;
    wire write = write_valid && data_valid && !answer_valid;
    wire start = write && write_offset == `CONTROL && write_data[0];
    assign s_axi_awready = !write_valid && flaw != `DEAF;
    assign s_axi_wready = !data_valid;
    assign s_axi_bvalid = answer_valid;
    assign s_axi_bresp = 0;
    assign s_axi_arready = !read_valid;
    assign s_axi_rvalid = read_valid;
    assign s_axi_rdata = read_data;
    assign s_axi_rresp = 0;

    always @(posedge clk) begin
        if (s_axi_awvalid && s_axi_awready) {write_valid, write_offset} <= {1'b1, s_axi_awaddr};
        if (s_axi_wvalid && s_axi_wready) {data_valid, write_data} <= {1'b1, s_axi_wdata};
        if (write) begin
            {write_valid, data_valid, answer_valid} <= 3'b001;
            if (write_offset == `CONTROL) interrupt_enable <= write_data[1];
            else if (write_offset == `STATUS) interrupt <= interrupt && !write_data[3];
            else settings[write_offset[11:2]] <= write_data;
        end
        if (answer_valid && s_axi_bready) answer_valid <= 0;
        if (s_axi_arvalid && s_axi_arready) begin
            read_valid <= 1;
            case (s_axi_araddr)
                `STATUS: read_data <= {28'b0, interrupt, failed, done, running};
                `FAULT: read_data <= fault;
                `FAULT_POSITION: read_data <= fault_position;
                `CYCLES_LOW: read_data <= cycles[31:0];
                `LOAD_BYTES_LOW: read_data <= bytes_loaded[31:0];
                `STORE_BYTES_LOW: read_data <= bytes_stored[31:0];
                `KNOWN_REGISTERS
                default: read_data <= 0;
            endcase
        end
        if (read_valid && s_axi_rready) read_valid <= 0;

        tick <= tick + 1;
        if (running) cycles <= cycles + 1;
        case (state)
            IDLE: if (start) begin
                {done, failed, fault, fault_position} <= 0;
                {cycles, bytes_loaded, bytes_stored, offset, beat} <= 0;
                tick <= 0;
                state <= FETCH_ADDRESS;
            end
            FETCH_ADDRESS: if (m_axi_arvalid && m_axi_arready) state <= FETCH;
            FETCH: if (m_axi_rvalid && m_axi_rready) begin
                beat <= beat + 1;
                if (fault == 0 && m_axi_rresp != 0) fault <= `READ_ERROR;
                else if (fault == 0 && beat % (32 / BYTES) == 0 && m_axi_rdata[7:0] == 0) begin
                    fault <= `ILLEGAL;
                    fault_position <= beat * BYTES / 32;
                end
                if (m_axi_rlast) state <= LOAD_ADDRESS;
            end
            LOAD_ADDRESS: begin
                beat <= 0;
                if (fault != 0) state <= STOP;
                else if (m_axi_arvalid && m_axi_arready && flaw != `STUCK) state <= LOAD;
            end
            LOAD: if (m_axi_rvalid && m_axi_rready) begin
                buffer[beat] <= m_axi_rdata;
                beat <= beat + 1;
                bytes_loaded <= bytes_loaded + BYTES;
                if (m_axi_rresp != 0) fault <= `READ_ERROR;
                if (m_axi_rlast) state <= STORE_ADDRESS;
            end
            STORE_ADDRESS: begin
                beat <= 0;
                if (fault != 0) state <= STOP;
                else if (m_axi_awready) state <= STORE;
            end
            STORE: if (m_axi_wvalid && m_axi_wready) begin
                beat <= beat + 1;
                bytes_stored <= bytes_stored + BYTES;
                if (beat == beats - 1) state <= ANSWER;
            end
            ANSWER: if (m_axi_bvalid) begin
                if (m_axi_bresp != 0) {fault, fault_position} <= {32'd`WRITE_ERROR, 32'd1};
                offset <= offset + beats * BYTES;
                state <= m_axi_bresp != 0 || left <= BURST ? STOP : LOAD_ADDRESS;
            end
            STOP: begin
                done <= fault == 0;
                failed <= fault != 0;
                interrupt <= interrupt_enable;
                state <= IDLE;
            end
            default: ;
        endcase
        if (rst) begin
            state <= IDLE;
            {done, failed, interrupt, interrupt_enable} <= 0;
            {write_valid, data_valid, answer_valid, read_valid} <= 0;
            tick <= 0;
            settings[`SEGMENT7_SIZE / 4] <= 0;
        end
    end
endmodule
